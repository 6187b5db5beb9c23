#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

#include <rubato/data/image_set.hpp>

namespace rubato {

/// Samples in memory: sample i is inputs[i] and targets[i].
struct TensorDataset {
  at::Tensor inputs;
  at::Tensor targets;
  /// What a state knows the data by, if somebody has hashed them already: samples with the same
  /// fingerprint are the same. Empty is taken from the tensors when a state is first saved or
  /// loaded.
  std::string fingerprint{};

  [[nodiscard]] std::int64_t size() const { return inputs.size(0); }
};

/// Throws Error when the two tensors do not belong together: undefined, without a sample, of
/// different first dimensions, or not on the CPU. `name` names the set ("training data").
void require_valid(const TensorDataset& dataset, std::string_view name);

/// The fingerprint; where there is none yet, SHA-256 of type, shape and bytes of both tensors,
/// which it then has: a second or less for 500 MB.
const std::string& fingerprint_of(TensorDataset& dataset);

/// Images as float32 inputs [count, 1, height, width], scaled to [0, 1] and then to mean 0 and
/// deviation 1 by `statistics`, and int64 targets [count].
[[nodiscard]] TensorDataset to_tensors(const ImageSet& images, const PixelStatistics& statistics);

}  // namespace rubato
