#pragma once

#include <span>
#include <string>

#include "answer.hpp"
#include "runs/experiment/design/design.hpp"

namespace rubato {

/// A line for each cell. Unknown values are empty; differences are those to the baseline.
[[nodiscard]] std::string cells_csv(const Answer& answer);
/// A line for each run, including the seconds that it took on this machine.
[[nodiscard]] std::string runs_csv(const Answer& answer);
/// The whole answer without these seconds, so that its text does not depend on the machine.
[[nodiscard]] std::string to_json(const Design& design, const Answer& answer,
                                  std::span<const TuningAnswer> tuning);

}  // namespace rubato
