#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include <rubato/libtorch/dataset.hpp>

#include "loop/data/sample_set.hpp"

namespace rubato {

/// How the samples of a set become tensors.
struct SampleTensors {
  /// Shape of the input of a sample, with as many elements as the sample has numbers.
  std::vector<std::int64_t> input_shape{};
  /// Type of inputs: at::kFloat, at::kDouble, or at::kLong for tokens.
  at::ScalarType input_type = at::kFloat;
  /// Type of real targets; classes are at::kLong.
  at::ScalarType real_target_type = at::kFloat;
};

/// The samples of `set`, the training or the test set of `data`, as tensors. Inputs that are in
/// memory, in the type and shape that is asked for, are used where they lie. Other samples are
/// converted once if they take at most `room` bytes, and otherwise for each minibatch from the
/// file: the same bits, slower.
[[nodiscard]] std::shared_ptr<const Dataset> make_dataset(const DataSets& data,
                                                          const SampleSet& set,
                                                          SampleTensors tensors, double room);

}  // namespace rubato
