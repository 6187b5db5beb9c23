#pragma once

#include <cstdint>
#include <memory>

#include <rubato/config/run_configuration.hpp>
#include <rubato/plan/step_source.hpp>
#include <rubato/sim/cluster_model.hpp>

#include "config/trace_source.hpp"

namespace rubato {

/// The imagined cluster of a run whose model's gradient has so many bytes: that of --cluster, with
/// what other options say of it. Throws Error.
[[nodiscard]] ClusterModel cluster_of(const RunConfiguration& run, std::int64_t gradient_bytes);

/// The source of a run's steps: `steps` are those of load_run_steps(). Throws Error for steps that
/// cannot be taken in modelled time.
[[nodiscard]] std::unique_ptr<StepSource> make_step_source(const RunConfiguration& run,
                                                           const RunSteps& steps,
                                                           std::int64_t gradient_bytes);

/// Throws Error where devices go before a training on so many samples has come to its end, and that
/// is to be an error, and for batches (--batch) that are larger than an epoch: what training itself
/// would find out late.
void require_devices(const RunConfiguration& run, const RunSteps& steps,
                     std::int64_t gradient_bytes, std::int64_t samples);

}  // namespace rubato
