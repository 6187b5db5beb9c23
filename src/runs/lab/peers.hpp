#pragma once

#include <string>
#include <vector>

#include "contestant.hpp"
#include "measure.hpp"

namespace rubato::lab {

/// The all-reduce of another project, in a program of its own.
struct Peer {
  /// The name, such as "MPI_Allreduce".
  std::string name;
  /// The shell command without the arguments that describe the task; "{ranks}" in it stands for the
  /// number of ranks.
  std::string command;
};

/// The peers whose programs were built and lie in this program's folder, or in ../libexec/rubato
/// from there.
[[nodiscard]] std::vector<Peer> installed_peers();

/// Lets a peer sum a buffer of each core (never fused) under the same conditions as the
/// contestants, and returns the seconds of each run; none if it fails.
[[nodiscard]] std::vector<double> measure(const Peer& peer, const ReduceTask& task,
                                          const MeasureOptions& options);

/// An entrant for the peer, which is started anew for each turn. It does not do the update of a
/// fused task.
[[nodiscard]] Entrant entrant(const Peer& peer, const ReduceTask& task);

}  // namespace rubato::lab
