#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/loop/workers.hpp>

#include "contestants.hpp"

namespace rubato::lab {

struct MeasureOptions {
  Arrival arrival = Arrival::simultaneous;
  Cache cache = Cache::hot;
  /// Approximate time to spend on runs, in seconds.
  double seconds = 0.5;
};

/// Statistics over all runs of the seconds from the arrival of the last buffer to the end of the
/// task.
struct Measurement {
  double median = 0;
  double min = 0;
  double max = 0;
  std::int64_t runs = 0;
};

/// Returns the seconds since a fixed moment.
using Clock = std::function<double()>;
[[nodiscard]] double steady_seconds();

/// Runs the contestant repeatedly for about `options.seconds`, each time on fresh buffers, and
/// returns the seconds of each run in order. The first run is not timed; its result is checked, and
/// the program aborts if it is wrong.
[[nodiscard]] std::vector<double> measure(Contestant& contestant, const ReduceTask& task,
                                          const MeasureOptions& options,
                                          const Clock& clock = steady_seconds);

/// A strategy or a peer that takes turns with others.
struct Entrant {
  std::string name;
  /// Takes a turn of about `options.seconds` and returns the seconds of each of its runs; none if
  /// it failed.
  std::function<std::vector<double>(const MeasureOptions& options)> take_turn;
};

using MakeContestant = std::function<std::unique_ptr<Contestant>()>;

/// An entrant whose contestant is made for each turn and destroyed at its end, so that only one
/// contestant's arrays are in memory at a time. Each turn therefore begins with a run that is
/// checked instead of timed, as in measure().
[[nodiscard]] Entrant entrant(std::string_view name, MakeContestant make, const ReduceTask& task,
                              Clock clock = steady_seconds);
/// An entrant for the strategy of that name, as make_contestant() accepts it. `workers` must
/// outlive it.
[[nodiscard]] Entrant entrant(std::string_view strategy, const ReduceTask& task, Workers& workers);

/// The number of turns of each entrant.
inline constexpr int kRounds = 3;

/// Called before each turn with the entrant's name and the round, from 1.
using OnTurn = std::function<void(std::string_view name, int round)>;

/// Measures the entrants in turns, in the order given, so that a machine whose speed drifts favours
/// none of them. There are kRounds rounds, each with the same share of `options.seconds`; the runs
/// of an entrant are pooled. The result is empty for an entrant that failed in a turn, which gets
/// no more turns.
[[nodiscard]] std::vector<std::optional<Measurement>> measure_in_turn(
    std::span<const Entrant> entrants, const MeasureOptions& options, const OnTurn& on_turn);

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

/// The environment that a measurement depends on, without which a number should never be published:
/// name and value of the processor, its caches, hardware threads, kernel, compiler and BLAS;
/// "unknown" if the machine does not say.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> environment();

/// Bandwidth of main memory in bytes per second, by the triad of McCalpin's STREAM, a[i] = b[i] + s
/// c[i]: the best of several passes on all threads; counted as STREAM does, 24 bytes for an
/// element.
[[nodiscard]] double triad_bandwidth(Workers& workers);

}  // namespace rubato::lab
