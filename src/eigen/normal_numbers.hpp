#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include <rubato/plan/stream_key.hpp>

#include "core/mix.hpp"

namespace rubato {

/// Independent standard normal numbers that belong to a minibatch: the n-th pair of them is a
/// function of the key and n, whoever draws it and in whatever order.
class NormalNumbers {
 public:
  explicit NormalNumbers(const StreamKey& key)
      : seed_(seed_of(key.seed, {key.epoch, key.step, key.minibatch})) {}

  /// By Box and Muller (1958) from two numbers of SplitMix64.
  [[nodiscard]] std::array<double, 2> pair(std::uint64_t n) const {
    const double radius = std::sqrt(-2 * std::log(1 - uniform(2 * n)));
    const double angle = 2 * std::numbers::pi * uniform(2 * n + 1);
    return {radius * std::cos(angle), radius * std::sin(angle)};
  }

 private:
  // The n-th, in [0, 1): a multiple of 2^-53, so that 1 less it is above 0.
  [[nodiscard]] double uniform(std::uint64_t n) const {
    constexpr std::uint64_t kStep = 0x9E37'79B9'7F4A'7C15;
    return static_cast<double>(mixed(seed_ + n * kStep) >> 11U) * 0x1p-53;
  }

  std::uint64_t seed_;
};

}  // namespace rubato
