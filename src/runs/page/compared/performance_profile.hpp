#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runs/experiment/answer/answer.hpp"

namespace rubato::page {

/// How far the runs of one choice came behind the best run of the same problem.
struct Profile {
  /// What tells the choice apart: Answer::Cell::labels that are no condition's.
  std::string label;
  /// In points of accuracy, or in test loss; in ascending order. Runs that have no result are not
  /// in it.
  std::vector<double> behind{};
};

/// Performance profiles (Dolan and Moré, Mathematical Programming 91, 2002), with differences in
/// the place of ratios: accuracies have none that say anything. A problem is a condition with one
/// seed; its best is the best of all choices.
struct PerformanceProfiles {
  std::size_t problems = 0;
  std::vector<Profile> profiles{};
};

/// Over the conditions that have more than a baseline. Empty where these are fewer than two, for
/// one condition's results say it all, or where there is one choice.
[[nodiscard]] PerformanceProfiles performance_profiles(const Answer& answer);

/// The labels that tell the cells of a condition apart.
[[nodiscard]] std::string label_of(const Answer& answer, const Answer::Cell& cell);

}  // namespace rubato::page
