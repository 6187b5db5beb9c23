#pragma once

#include <cstdint>
#include <string_view>

#include <ATen/core/Tensor.h>

#include <rubato/data/image_set.hpp>

namespace rubato {

/// Samples in memory: sample i is inputs[i] and targets[i].
struct TensorDataset {
  at::Tensor inputs;
  at::Tensor targets;

  [[nodiscard]] std::int64_t size() const { return inputs.size(0); }
};

/// Throws Error when the two tensors do not belong together: undefined, without a sample, of
/// different first dimensions, or not on the CPU. `name` names the set ("training data").
void require_valid(const TensorDataset& dataset, std::string_view name);

/// Images as float32 inputs [count, 1, height, width], scaled to [0, 1] and then to mean 0 and
/// deviation 1 by `statistics`, and int64 targets [count].
[[nodiscard]] TensorDataset to_tensors(const ImageSet& images, const PixelStatistics& statistics);

}  // namespace rubato
