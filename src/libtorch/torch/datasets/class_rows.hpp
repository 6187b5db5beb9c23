#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

namespace rubato {

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

}  // namespace rubato
