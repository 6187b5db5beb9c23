#pragma once

#include <vector>

#include <rubato/loop/hosts.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>

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

}  // namespace rubato
