#pragma once

#include <string>
#include <vector>

#include "contestant.hpp"
#include "measure.hpp"

namespace rubato::lab {

/// Another project's all-reduce, a program of its own.
struct Peer {
  /// "MPI_Allreduce".
  std::string name;
  /// The shell command, without what it is to do; "{ranks}" in it is the number of ranks.
  std::string command;
};

/// The peers whose programs were built, and beside this one, or in ../libexec/rubato from it.
[[nodiscard]] std::vector<Peer> installed_peers();

/// Lets a peer sum a buffer of each core (never fused) under the same conditions as the
/// contestants, and returns the seconds of each run; none where it fails.
[[nodiscard]] std::vector<double> measure(const Peer& peer, const ReduceTask& task,
                                          const MeasureOptions& options);

/// The peer, started anew for each turn. A task's update is not done.
[[nodiscard]] Entrant entrant(const Peer& peer, const ReduceTask& task);

}  // namespace rubato::lab
