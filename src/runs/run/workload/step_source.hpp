#pragma once

#include <cstdint>
#include <memory>

#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/cluster_model.hpp>
#include <rubato/steps/step_source.hpp>

#include "runs/config/values/trace_source.hpp"

namespace rubato {

/// The imagined cluster of a run whose model's gradient has `gradient_bytes`: that of --cluster,
/// completed by other options. Throws Error.
[[nodiscard]] ClusterModel cluster_of(const RunConfiguration& run, std::int64_t gradient_bytes);

/// The source of a run's steps: `steps` are those of load_run_steps(). Throws Error for steps that
/// cannot be taken in modelled time.
[[nodiscard]] std::unique_ptr<StepSource> make_step_source(const RunConfiguration& run,
                                                           const RunSteps& steps,
                                                           std::int64_t gradient_bytes);

}  // namespace rubato
