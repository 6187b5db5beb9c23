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
  /// What tells the runs apart: trace, rule, the other axes, what was tuned, and the seed.
  std::vector<HyperparameterColumn> hyperparameters{};
  /// The tags of what the answer is about.
  std::vector<std::string> metrics{};
};

/// `tuned` is the option that was tuned; empty where none was.
[[nodiscard]] TensorBoardColumns tensorboard_columns(const ExperimentPlan& plan,
                                                     const std::string& tuned,
                                                     const Measure& measure);

/// Writes them into an event file in the folder of the runs, in place of an earlier one; does
/// nothing where no run writes event files. Throws OutputError.
void write_tensorboard_columns(const ExperimentFolder& folder, const ExperimentPlan& plan,
                               const std::string& tuned, const Measure& measure);

}  // namespace rubato
