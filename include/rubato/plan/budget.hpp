#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <rubato/plan/clock_time.hpp>

namespace rubato {

/// Limits of a training besides its epochs: it ends, if necessary in the middle of an epoch, with
/// the step that reaches one of them. Hours and money can also be reached between steps: without
/// devices, in lost attempts at a step, and in restarts. All are above 0.
struct Budget {
  /// Scale-invariant: the sum of the steps' gains. A rule with smaller gains gets more steps
  /// (Johnson et al. 2020, section 3.2).
  std::optional<double> iterations{};
  std::optional<std::int64_t> samples{};
  /// Of modelled time, which the source of the steps has to have (StepSource::has_clock()), and
  /// what that time costs.
  std::optional<double> hours{};
  std::optional<double> money{};

  [[nodiscard]] bool needs_clock() const { return hours || money; }
  /// The hours, as the clock counts.
  [[nodiscard]] std::optional<double> seconds() const;

  friend bool operator==(const Budget&, const Budget&) = default;
};

/// Throws Error for a value that is not above 0 or not finite.
void require_valid(const Budget& budget);

/// "hours 3, money 12.5": what is limited; empty where nothing is.
[[nodiscard]] std::string to_text(const Budget& budget);

/// What a training has come to.
struct Spent {
  double iterations = 0;
  std::int64_t samples = 0;
  std::optional<ClockTime> time{};
};
/// The largest share of a limit that is used up, from 0 to 1; 0 without limits.
[[nodiscard]] double share_spent(const Budget& budget, const Spent& spent);
/// The limit that has been reached, as a reason to end: "100 iterations reached"; empty if none
/// has.
[[nodiscard]] std::string reached(const Budget& budget, const Spent& spent);

}  // namespace rubato
