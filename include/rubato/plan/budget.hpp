#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <rubato/plan/clock_time.hpp>

namespace rubato {

/// What a training may come to, besides its epochs: it ends, in the middle of an epoch if need be,
/// with the step that reaches one of these. Hours and money are reached between steps, too: while
/// there are no devices, in attempts at a step that are lost, and in restarts. All are above 0.
struct Budget {
  /// Scale-invariant: the sum of the steps' gains. What a rule needs more steps for, it gets
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
/// How much of the budget that it comes nearest to, 0 to 1; 0 where there is none.
[[nodiscard]] double share_spent(const Budget& budget, const Spent& spent);
/// What it has reached of its budget, as the reason to end for: "100 iterations reached"; empty
/// where there is some left of everything.
[[nodiscard]] std::string reached(const Budget& budget, const Spent& spent);

}  // namespace rubato
