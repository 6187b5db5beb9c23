#include "class_rows.hpp"

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

}  // namespace rubato
