#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/random.hpp>

#include "loop/data/sample_set.hpp"
#include "loop/data/tables/table_encoding.hpp"
#include "runs/config/allowed.hpp"
#include "runs/config/values/model_choice.hpp"

namespace rubato {

/// The targets that the configuration's loss leaves out, or may leave out.
[[nodiscard]] IgnoredTargets ignored_targets(const RunConfiguration& configuration);

/// The data that --data names, unchanged. Throws Error if they cannot be read.
[[nodiscard]] DataSets read_data(const RunConfiguration& configuration);

/// The data that a configuration names, with the samples of --validation held out, and normalised
/// by the remaining training set. Throws Error if they cannot be read, or are not what its other
/// options need, such as a test set or classes.
[[nodiscard]] DataSets load_data(const RunConfiguration& configuration);

/// The same for data of the program itself.
[[nodiscard]] DataSets prepared(const RunConfiguration& configuration, DataSets data);

/// Holds out the samples of --validation, if it is given. Throws Error if there are too few.
void hold_out(const RunConfiguration& configuration, DataSets& data);

/// Whether targets are rows of probabilities of classes, as the configuration's loss takes them.
[[nodiscard]] bool are_probabilities(const RunConfiguration& configuration,
                                     const SampleRows& targets);

/// The sampler of the weights in the training set that --sampler asks for; empty if it asks for
/// none. Throws Error if the data have no such weights, or none to draw by.
[[nodiscard]] Sampler sampler_in(const RunConfiguration& configuration, const DataSets& data);

/// The facts about data that require_data() compares with the options of a run.
[[nodiscard]] KnownData known_data(const DataSets& data);

/// The facts about its data that a run keeps, as JSON, and the names of its classes, which may be
/// empty.
[[nodiscard]] std::string data_record(const RunConfiguration& configuration, const DataSets& data);
[[nodiscard]] std::vector<std::string> class_names(const DataSets& data);

/// A description such as "mnist-cnn on digits: 12000 training and 2000 test images of 1 x 28 x 28
/// in 10 classes".
[[nodiscard]] std::string describe(const RunConfiguration& configuration, const DataSets& data);

/// The shape of the samples. Samples of one or two dimensions are images of one channel, and one
/// dimension is one row; of more than three, all but the last two are channels.
[[nodiscard]] DataShape shape_of(const DataSets& data);

/// The file in which a run keeps the facts about its data: Workload::data_record().
inline constexpr const char* kDataRecordFile = "data.json";

/// The samples that --data of `configuration` names, converted for a model that was trained on
/// other data, by the facts about those that its run kept in its folder. They are the test set if
/// the data have one, otherwise all, and are returned as both sets, since nothing is trained on
/// them. With `labels` they have targets; without, targets are ignored and may be missing. With
/// UnseenCategories::missing, DataSets::notes says how many rows of a table have a category that
/// training did not have.
///
/// Throws Error for data that cannot be read, or are not of the kind that the model needs.
[[nodiscard]] DataSets load_recorded_data(const std::filesystem::path& run_folder,
                                          const RunConfiguration& configuration, bool labels,
                                          UnseenCategories unseen = UnseenCategories::refuse);

/// Throws Error if `weights` is the folder of a run and its summary.json names parameters other
/// than these, which were read from it.
void require_weights_of_summary(const std::filesystem::path& weights,
                                std::span<const NamedArray> parameters);

}  // namespace rubato
