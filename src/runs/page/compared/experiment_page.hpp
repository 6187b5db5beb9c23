#pragma once

#include <string>

#include "runs/experiment/conduct/recorded_experiment.hpp"
#include "runs/page/html/document.hpp"

namespace rubato::page {

/// The page of an experiment, which is in `folder`.
[[nodiscard]] Document document_of_experiment(const RecordedExperiment& experiment,
                                              const std::string& folder);

/// Its charts: of each condition intervals, costs to a target and mean curves, and a learning curve
/// for each choice and condition.
[[nodiscard]] nlohmann::ordered_json charts_of(const Answer& answer);

}  // namespace rubato::page
