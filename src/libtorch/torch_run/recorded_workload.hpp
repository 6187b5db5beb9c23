#pragma once

#include <filesystem>
#include <memory>

#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>

namespace rubato {

/// A trained model on data other than its run's, which load_recorded_data() reads: all of them are
/// its test set, and nothing is held out.
[[nodiscard]] std::shared_ptr<const Workload> recorded_workload(
    const RunConfiguration& configuration, const std::filesystem::path& run_folder, bool labels);

}  // namespace rubato
