#include <algorithm>
#include <cmath>

#include <rubato/core/error.hpp>
#include <rubato/plan/clock_time.hpp>

namespace rubato {

namespace {

// Restarts beyond this are no count.
constexpr double kMostRestarts = 9e15;

}  // namespace

std::vector<double> ClockTime::state() const {
  return {seconds,
          core_seconds,
          money,
          idle_seconds,
          lost_seconds,
          restart_seconds,
          static_cast<double>(restarts)};
}

ClockTime ClockTime::of_state(std::span<const double> state) {
  constexpr std::size_t kNumbers = 7;
  const bool good = state.size() == kNumbers && std::ranges::all_of(state, [](double number) {
                      return std::isfinite(number) && number >= 0;
                    });
  if (!good || state[6] > kMostRestarts) throw Error("the state is damaged: the time of its clock");
  return {.seconds = state[0],
          .core_seconds = state[1],
          .money = state[2],
          .idle_seconds = state[3],
          .lost_seconds = state[4],
          .restart_seconds = state[5],
          .restarts = static_cast<std::int64_t>(state[6])};
}

}  // namespace rubato
