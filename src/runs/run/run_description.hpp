#pragma once

#include <string>
#include <vector>

#include <rubato/loop/hosts.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/tensorboard.hpp>
#include <rubato/runs/workload.hpp>

#include "runs/config/run_option.hpp"
#include "runs/config/values/trace_source.hpp"

namespace rubato {

/// The texts that must be equal on all hosts before they take part: the kernels, and the options
/// that change the result, except those whose content is compared.
[[nodiscard]] std::vector<NamedText> what_is_asked_for(const RunConfiguration& configuration,
                                                       const Workload& workload);

/// The steps of a run, which must be equal, too.
[[nodiscard]] NamedText what_is_followed(const RunSteps& steps);

/// The texts that must be equal on all hosts before the first step: the steps, the data, and
/// everything that a new trainer starts from, or the checkpoint that it continues from (null if
/// there is none).
[[nodiscard]] std::vector<NamedText> what_is_trained(const RunSteps& steps, const Trainer& trainer,
                                                     const State* checkpoint);

/// The settings that HPARAMS shows for a run: the options that are set and that its result depends
/// on, and the cores. A path is reduced to its last name, so that a run that is moved stays the
/// same.
[[nodiscard]] std::vector<Hyperparameter> hyperparameters_of(const RunConfiguration& configuration);

/// The column of HPARAMS for an option of that name. Throws Error for an unknown one.
[[nodiscard]] HyperparameterColumn hyperparameter_column(const std::string& option);

}  // namespace rubato
