#pragma once

#include <algorithm>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

namespace rubato::test {

/// Normally distributed float32 values, the same ones for a seed.
inline at::Tensor random_tensor(at::IntArrayRef sizes, std::uint64_t seed = 1) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn(sizes, generator);
}

inline at::Tensor channels_last(const at::Tensor& tensor) {
  return tensor.contiguous(at::MemoryFormat::ChannelsLast);
}

/// The largest difference, as a part of the largest value that was expected.
inline double relative_error(const at::Tensor& actual, const at::Tensor& expected) {
  const at::Tensor wide = expected.to(at::kDouble);
  const double largest = wide.abs().max().item<double>();
  return (actual.to(at::kDouble) - wide).abs().max().item<double>() / std::max(largest, 1e-30);
}

}  // namespace rubato::test
