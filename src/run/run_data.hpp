#pragma once

#include <string>

#include <rubato/config/run_configuration.hpp>

#include "config/engine.hpp"
#include "data/sample_set.hpp"

namespace rubato {

/// The data that a configuration names, with the samples held out that --validation asks for, and
/// normalised by what is left to train on. Throws Error where they cannot be read, or are not what
/// its other options need: a test set, classes.
[[nodiscard]] DataSets load_data(const RunConfiguration& configuration);

/// The same of data that a program has itself.
[[nodiscard]] DataSets prepared(const RunConfiguration& configuration, DataSets data);

/// "mnist-cnn on digits: 12000 training and 2000 test images".
[[nodiscard]] std::string describe(const RunConfiguration& configuration, const DataSets& data);

/// Of the samples. Those of fewer dimensions than three are images of one channel, and of one row;
/// of those of more, all but the last two are channels.
[[nodiscard]] DataShape shape_of(const DataSets& data);

/// Throws Error unless there is one class, or one row of real numbers, for each sample: what
/// built-in models are trained on.
void require_one_target(const RunConfiguration& configuration, const DataSets& data);

}  // namespace rubato
