#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "html.hpp"
#include "runs/experiment/answer/answer.hpp"
#include "runs/experiment/conduct/conduct.hpp"

namespace rubato::page {

/// The distances of one choice's runs from the best run of the same problem.
struct Profile {
  /// Labels that identify the choice: those of Answer::Cell::labels that are not a condition's.
  std::string label;
  /// Distances in points of accuracy or in test loss, in ascending order. Runs without a result
  /// have none.
  std::vector<double> behind{};
};

/// Performance profiles (Dolan and Moré, Mathematical Programming 91, 2002), with differences
/// instead of ratios, because ratios of accuracies are not meaningful. A problem is a condition
/// with one seed; its best is the best of all choices.
struct PerformanceProfiles {
  std::size_t problems = 0;
  std::vector<Profile> profiles{};
};

/// Profiles over the conditions that have more than a baseline. Empty if there are fewer than two
/// such conditions, because the results of one say it all, or if there is only one choice.
[[nodiscard]] PerformanceProfiles performance_profiles(const Answer& answer);

/// The labels that tell the cells of a condition apart.
[[nodiscard]] std::string label_of(const Answer& answer, const Answer::Cell& cell);

/// The page of an experiment in `folder`.
[[nodiscard]] Document document_of_experiment(const RecordedExperiment& experiment,
                                              const std::string& folder);

/// The charts of an experiment: for each condition intervals, costs to a target and mean curves,
/// and learning curves for each choice and condition.
[[nodiscard]] nlohmann::ordered_json charts_of(const Answer& answer);

}  // namespace rubato::page
