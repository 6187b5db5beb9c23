#pragma once

#include <filesystem>

#include <rubato/config/run_configuration.hpp>
#include <rubato/run/workload.hpp>

namespace rubato {

/// What a configuration says of the options that `rubato eval` takes, on which it depends what a
/// model does on the test set, of the model with `weights` (a file or a run's folder); all else as
/// by default.
[[nodiscard]] RunConfiguration evaluation_configuration(const RunConfiguration& run,
                                                        const std::filesystem::path& weights);

/// What the model of a workload does on its test set, with the weights that it begins with.
/// Nothing is trained. Throws Error as Trainer does.
[[nodiscard]] Evaluation evaluate(const Workload& workload, const RunConfiguration& configuration);

/// What it says of the samples, as Workload::predict() does.
[[nodiscard]] ArrayCopies predict(const Workload& workload, const RunConfiguration& configuration,
                                  Prediction what);

}  // namespace rubato
