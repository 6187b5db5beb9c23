#pragma once

#include <string>
#include <vector>

#include <rubato/runs/tensorboard.hpp>

#include "experiment_folder.hpp"
#include "run_result.hpp"
#include "runs/experiment/design/runs.hpp"

namespace rubato {

/// The columns of HPARAMS, TensorBoard's table of runs.
struct TensorBoardColumns {
  /// The options that tell the runs apart: trace, rule, the other axes, the tuned option, and the
  /// seed.
  std::vector<HyperparameterColumn> hyperparameters{};
  /// The tags of the quantities that the answer is about.
  std::vector<std::string> metrics{};
};

/// The columns of an experiment's table. `tuned` is the option that was tuned; empty if none was.
[[nodiscard]] TensorBoardColumns tensorboard_columns(const ExperimentPlan& plan,
                                                     const std::string& tuned,
                                                     const Measure& measure);

/// Writes the columns into an event file in the folder of the runs, replacing an earlier one; does
/// nothing if no run writes event files. Throws OutputError.
void write_tensorboard_columns(const ExperimentFolder& folder, const ExperimentPlan& plan,
                               const std::string& tuned, const Measure& measure);

}  // namespace rubato
