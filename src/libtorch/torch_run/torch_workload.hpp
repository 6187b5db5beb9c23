#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include <rubato/runs/records.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>

#include "loop/data/tables/table_encoding.hpp"

namespace rubato {

/// Throws Error if the kernels in use are not those that --kernels portable promises.
void require_portable_kernels(const EngineFacts::Facts& in_use);

/// A trained model on data other than its run's, which load_recorded_data() reads: all of them are
/// its test set, and nothing is held out. `note` is called with each line of DataSets::notes.
[[nodiscard]] std::shared_ptr<const Workload> recorded_workload(
    const RunConfiguration& configuration, const std::filesystem::path& run_folder, bool labels,
    UnseenCategories unseen, const std::function<void(const std::string& line)>& note);

}  // namespace rubato
