#pragma once

#include <filesystem>

#include <rubato/runs/run_configuration.hpp>

#include "loop/data/sample_set.hpp"

namespace rubato {

/// The file in which a run keeps the facts about its data: Workload::data_record().
inline constexpr const char* kDataRecordFile = "data.json";

/// The samples that --data of `configuration` names, converted for a model that was trained on
/// other data, by the facts about those that its run kept in its folder. They are the test set if
/// the data have one, otherwise all, and are returned as both sets, since nothing is trained on
/// them. With `labels` they have targets; without, targets are ignored and may be missing.
///
/// Throws Error for data that cannot be read, or are not of the kind that the model needs.
[[nodiscard]] DataSets load_recorded_data(const std::filesystem::path& run_folder,
                                          const RunConfiguration& configuration, bool labels);

}  // namespace rubato
