#pragma once

#include <filesystem>

#include <rubato/runs/run_configuration.hpp>

#include "loop/data/sample_set.hpp"

namespace rubato {

/// What a run keeps of its data: Workload::data_record().
inline constexpr const char* kDataRecordFile = "data.json";

/// The samples that --data of `configuration` names, as a model takes them that was trained on
/// other data, by what its run kept of those in its folder. They are the test set where the data
/// have one, otherwise all, and stand as both sets, since nothing is trained on them. With `labels`
/// they have targets; without, targets are not looked at and need not be there.
///
/// Throws Error for what cannot be read, or is not of the kind that the model takes.
[[nodiscard]] DataSets load_recorded_data(const std::filesystem::path& run_folder,
                                          const RunConfiguration& configuration, bool labels);

}  // namespace rubato
