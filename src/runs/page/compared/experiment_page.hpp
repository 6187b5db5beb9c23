#pragma once

#include <string>

#include "runs/experiment/conduct/recorded_experiment.hpp"
#include "runs/page/html/document.hpp"

namespace rubato::page {

/// The page of an experiment in `folder`.
[[nodiscard]] Document document_of_experiment(const RecordedExperiment& experiment,
                                              const std::string& folder);

/// The charts of an experiment: for each condition intervals, costs to a target and mean curves,
/// and learning curves for each choice and condition.
[[nodiscard]] nlohmann::ordered_json charts_of(const Answer& answer);

}  // namespace rubato::page
