#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/loop/workers.hpp>

#include "conditions.hpp"
#include "contestant.hpp"

namespace rubato::lab {

struct MeasureOptions {
  Arrival arrival = Arrival::simultaneous;
  Cache cache = Cache::hot;
  /// Seconds to spend on runs, about.
  double seconds = 0.5;
};

/// Seconds from the arrival of the last buffer to the end of the task, of all runs.
struct Measurement {
  double median = 0;
  double min = 0;
  double max = 0;
  std::int64_t runs = 0;
};

/// Seconds from some moment on.
using Clock = std::function<double()>;
[[nodiscard]] double steady_seconds();

/// Runs the contestant again and again for about `options.seconds`, each time on fresh buffers, and
/// returns the seconds of each run, in their order. Its first run, untimed, is checked: aborts
/// where its result is wrong.
[[nodiscard]] std::vector<double> measure(Contestant& contestant, const ReduceTask& task,
                                          const MeasureOptions& options,
                                          const Clock& clock = steady_seconds);

/// What takes turns with others: a strategy, or a peer.
struct Entrant {
  std::string name;
  /// Takes a turn of about `options.seconds` and returns the seconds of each of its runs; none
  /// where it failed.
  std::function<std::vector<double>(const MeasureOptions& options)> take_turn;
};

using MakeContestant = std::function<std::unique_ptr<Contestant>()>;

/// An entrant whose contestant is made for each turn and destroyed at its end, so that the arrays
/// of one contestant at a time are in memory. Each turn therefore begins with a run that is not
/// timed, but checked, as measure() says.
[[nodiscard]] Entrant entrant(std::string_view name, MakeContestant make, const ReduceTask& task,
                              Clock clock = steady_seconds);
/// The strategy of that name, as make_contestant() takes it. `workers` must outlive it.
[[nodiscard]] Entrant entrant(std::string_view strategy, const ReduceTask& task, Workers& workers);

/// How many turns each entrant has.
inline constexpr int kRounds = 3;

/// Before a turn: whose it is, and in which round, from 1.
using OnTurn = std::function<void(std::string_view name, int round)>;

/// Measures the entrants in turns, so that a machine whose speed drifts favours none of them: in
/// kRounds rounds, each with the same share of `options.seconds`, in the order given. The runs of
/// an entrant are pooled. Empty for one that failed in a turn; it gets no more.
[[nodiscard]] std::vector<std::optional<Measurement>> measure_in_turn(
    std::span<const Entrant> entrants, const MeasureOptions& options, const OnTurn& on_turn);

}  // namespace rubato::lab
