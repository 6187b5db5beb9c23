#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "statistics.hpp"

namespace rubato {

struct Answer;

/// The resamples that intervals of scores are made of.
inline constexpr std::int64_t kResamples = 2000;

/// A summary of the choices (a rule, for example) over all conditions that have more than a
/// baseline. A pair is a condition with a seed. Lost runs (is_lost()) are ranked below all others,
/// whether or not they have a value.
struct AllConditions {
  struct Choice {
    /// The labels of Answer::columns that are not a condition's.
    std::vector<std::string> labels{};
    /// Performance profile (Dolan and Moré, Mathematical Programming 91, 2002), with differences
    /// instead of ratios, because ratios of accuracies are not meaningful: how far its runs end
    /// behind the best cell of their pair, in points of accuracy or in test loss, in ascending
    /// order. Lost runs have no number here.
    std::vector<double> behind{};
    std::int64_t lost = 0;
    /// Mean over the pairs of the rank among the choices, 1 for the best; equals share the mean of
    /// their ranks.
    double mean_rank = 0;
    /// Interquartile mean over the pairs of how much better a run is than the baseline with the
    /// same seed, in standard deviations of that baseline (Answer::reference_of()); lost runs count
    /// as -infinity. The interval is from a bootstrap that resamples the seeds within each
    /// condition (Agarwal et al., NeurIPS 2021). Empty if a condition has no reference.
    std::optional<double> score{};
    std::optional<Interval> interval{};
    /// The number of conditions in which it is the best or the baseline, or non-inferior to it by
    /// the margin, and has no lost run.
    std::int64_t non_inferior_to_best = 0;
    std::int64_t non_inferior_to_baseline = 0;
  };

  /// Indices of Answer::conditions.
  std::vector<std::size_t> conditions{};
  /// The standard deviation that scores are measured in, for each of these conditions.
  std::vector<std::optional<double>> units{};
  std::int64_t pairs = 0;
  /// The choices that every one of the conditions has.
  std::vector<Choice> choices{};

  /// Distances at which profiles are tabulated: 0, and then 1, 1.5, 2, 3, 5 and 7 times powers of
  /// ten, from a hundredth of the greatest distance's power to the first that is not below it.
  [[nodiscard]] std::vector<double> grid() const;
  /// The share of the pairs in which the choice ends at most `distance` behind the best.
  [[nodiscard]] double share_within(const Choice& choice, double distance) const;
};

/// Summarizes an answer. Empty if there are fewer than two conditions, because the results of one
/// say it all, or fewer than two choices.
[[nodiscard]] std::optional<AllConditions> all_conditions(const Answer& answer);

}  // namespace rubato
