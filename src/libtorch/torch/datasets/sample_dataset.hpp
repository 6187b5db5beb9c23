#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include <rubato/libtorch/dataset.hpp>

#include "loop/data/sample_set.hpp"

namespace rubato {

/// How inputs of a set of samples become tensors.
struct SampleTensors {
  /// Of a sample; as many numbers as it has.
  std::vector<std::int64_t> input_shape{};
  /// at::kFloat, at::kDouble, or at::kLong for tokens.
  at::ScalarType input_type = at::kFloat;
  /// Of real targets; classes are at::kLong.
  at::ScalarType real_target_type = at::kFloat;
};

/// The samples of `set`, the training or the test set of `data`, as tensors. Inputs that are in
/// memory, of the type and in the shape that is asked for, are used where they lie. All else is
/// made once where it takes no more than `room` bytes, and otherwise for each minibatch of what
/// lies in the file: the same bits, slower.
[[nodiscard]] std::shared_ptr<const Dataset> make_dataset(const DataSets& data,
                                                          const SampleSet& set,
                                                          SampleTensors tensors, double room);

}  // namespace rubato
