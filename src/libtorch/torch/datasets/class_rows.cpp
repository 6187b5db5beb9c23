#include "class_rows.hpp"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

namespace rubato {

std::optional<ClassRows> class_rows(const at::Tensor& outputs, const at::Tensor& targets) {
  const std::int64_t things = targets.dim();
  if (targets.is_floating_point() || things < 1 || outputs.dim() != things + 1) {
    return std::nullopt;
  }
  const at::IntArrayRef shape = targets.sizes();
  if (outputs.sizes().slice(0, static_cast<std::size_t>(things)) == shape) {
    if (things == 1) return ClassRows{.outputs = outputs, .targets = targets};
    return ClassRows{.outputs = outputs.flatten(0, -2), .targets = targets.flatten()};
  }
  const bool behind_first =
      outputs.size(0) == shape[0] && outputs.sizes().slice(2) == shape.slice(1);
  if (!behind_first) return std::nullopt;
  return ClassRows{.outputs = outputs.movedim(1, -1).flatten(0, -2), .targets = targets.flatten()};
}

std::optional<ClassRows> class_scores(const at::Tensor& outputs, const at::Tensor& targets,
                                      double threshold) {
  if (targets.is_floating_point() || targets.dim() == 0 || outputs.numel() != targets.numel()) {
    return class_rows(outputs, targets);
  }
  // Several labels of a sample with as many outputs have no scores of classes.
  const bool one_of_sample = targets.numel() == targets.size(0);
  const bool one_each = outputs.dim() == targets.dim() + 1 && outputs.size(-1) == 1;
  if (!one_of_sample && !one_each) return std::nullopt;
  const at::Tensor above = outputs.reshape({-1, 1}) - threshold;
  return ClassRows{.outputs = at::cat({at::zeros_like(above), above}, 1),
                   .targets = targets.reshape({-1})};
}

}  // namespace rubato
