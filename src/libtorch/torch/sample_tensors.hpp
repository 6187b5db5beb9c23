#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>

#include <rubato/libtorch/dataset.hpp>

#include "loop/data/sample_set.hpp"

namespace rubato {

/// Returns the batch that a data set gave for `samples` samples. Throws Error if a tensor of it has
/// another number of rows, or is not on the CPU, or if there are no inputs.
[[nodiscard]] Batch checked_batch(Batch batch, std::int64_t samples);

/// The scores that a model gives the classes of samples, tokens or pixels, and their true classes.
struct ClassRows {
  /// One row of scores for each of them, [things, classes].
  at::Tensor outputs;
  /// True classes as indices, [things].
  at::Tensor targets;
};

/// Outputs and targets of one class for each sample ([batch, classes] and [batch]) or of several,
/// such as those of the tokens of a sequence or the pixels of an image ([batch, ...] targets;
/// outputs with the classes as the last dimension or, in PyTorch's order, as the second: the former
/// if both fit). Empty if targets are not class indices, or do not match the outputs.
[[nodiscard]] std::optional<ClassRows> class_rows(const at::Tensor& outputs,
                                                  const at::Tensor& targets);

/// A model's scores for at least two classes. It differs from class_rows() for one output per class
/// index, which means 1 if it lies above `threshold` (Loss::threshold()) and 0 otherwise: outputs
/// of [batch, ..., 1], or of as many numbers as there are samples. Only the type and the shape of
/// targets matter.
[[nodiscard]] std::optional<ClassRows> class_scores(const at::Tensor& outputs,
                                                    const at::Tensor& targets, double threshold);

/// A tensor with the classes as the second dimension as rows, [things, classes].
[[nodiscard]] at::Tensor rows_by_class(const at::Tensor& tensor);

/// A model's scores for classes whose probabilities are the targets, in the shape of the outputs;
/// the most probable is the true class. Empty for targets of another type or shape.
[[nodiscard]] std::optional<ClassRows> most_probable(const at::Tensor& outputs,
                                                     const at::Tensor& targets);

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
/// converted once if they take at most `room` bytes with their targets, and otherwise for each
/// minibatch from the file: the same bits, slower.
[[nodiscard]] std::shared_ptr<const Dataset> make_dataset(const DataSets& data,
                                                          const SampleSet& set,
                                                          SampleTensors tensors, double room);

}  // namespace rubato
