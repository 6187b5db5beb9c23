#pragma once

#include <string>
#include <vector>

#include <rubato/runs/run_configuration.hpp>

#include "loop/data/sample_set.hpp"
#include "runs/config/values/engine.hpp"

namespace rubato {

/// The data that --data names, as they are. Throws Error where they cannot be read.
[[nodiscard]] DataSets read_data(const RunConfiguration& configuration);

/// The data that a configuration names, with the samples held out that --validation asks for, and
/// normalised by what is left to train on. Throws Error where they cannot be read, or are not what
/// its other options need: a test set, classes.
[[nodiscard]] DataSets load_data(const RunConfiguration& configuration);

/// The same of data that a program has itself.
[[nodiscard]] DataSets prepared(const RunConfiguration& configuration, DataSets data);

/// What a run keeps of its data, as JSON, and the names of its classes; without names, nothing.
[[nodiscard]] std::string data_record(const RunConfiguration& configuration, const DataSets& data);
[[nodiscard]] std::vector<std::string> class_names(const DataSets& data);

/// "mnist-cnn on digits: 12000 training and 2000 test images of 1 x 28 x 28 in 10 classes".
[[nodiscard]] std::string describe(const RunConfiguration& configuration, const DataSets& data);

/// Of the samples. Those of fewer dimensions than three are images of one channel, and of one row;
/// of those of more, all but the last two are channels.
[[nodiscard]] DataShape shape_of(const DataSets& data);

}  // namespace rubato
