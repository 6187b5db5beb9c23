#pragma once

#include <string>
#include <vector>

#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/tensorboard.hpp>

#include "runs/config/options/run_option.hpp"

namespace rubato {

/// The settings that HPARAMS shows for a run: the options that are set and that its result depends
/// on, and the cores. A path is reduced to its last name, so that a run that is moved stays the
/// same.
[[nodiscard]] std::vector<Hyperparameter> hyperparameters_of(const RunConfiguration& configuration);

/// The column of HPARAMS for an option of that name. Throws Error for an unknown one.
[[nodiscard]] HyperparameterColumn hyperparameter_column(const std::string& option);

}  // namespace rubato
