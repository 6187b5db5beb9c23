#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

namespace rubato {

/// What a model says of the classes of things, and which they are.
struct ClassRows {
  /// A row for each, [things, classes].
  at::Tensor outputs;
  /// Class indices, [things].
  at::Tensor targets;
};

/// Outputs and targets of one thing for each sample ([batch, classes] and [batch]) or of several,
/// as the tokens of a sequence or the pixels of an image are ([batch, ...] targets; outputs with
/// the classes behind all other dimensions, or behind the first, as PyTorch has them: the former
/// where both fit). Empty where targets are no class indices, or do not go with the outputs.
[[nodiscard]] std::optional<ClassRows> class_rows(const at::Tensor& outputs,
                                                  const at::Tensor& targets);

/// Returns a model's scores for at least two classes. It differs from class_rows() for one output
/// per class index, which means 1 if it lies above `threshold` (Loss::threshold()) and 0 otherwise:
/// outputs of [batch, ..., 1], or of as many numbers as there are samples. Only the type and the
/// shape of targets matter.
[[nodiscard]] std::optional<ClassRows> class_scores(const at::Tensor& outputs,
                                                    const at::Tensor& targets, double threshold);

}  // namespace rubato
