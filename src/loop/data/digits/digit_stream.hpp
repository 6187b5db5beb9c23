#pragma once

#include <cstdint>

namespace rubato::digits {

/// The random draws of one image: splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
/// number generators", OOPSLA 2014), started at a state that depends on a seed and a key only.
///
/// Everything is made from integers and from products and sums of doubles that round the same way
/// everywhere, so a stream gives the same bits on every machine.
class DigitStream {
 public:
  /// Distinct keys under one seed start at distinct states.
  DigitStream(std::uint64_t seed, std::uint64_t key) : state_(mixed(mixed(seed + kGamma) + key)) {}

  /// 64 random bits.
  [[nodiscard]] std::uint64_t bits() {
    state_ += kGamma;
    return mixed(state_);
  }

  /// Draws an integer 0 <= k < count, for 1 <= count < 2^32; uniform up to a bias of count / 2^32.
  [[nodiscard]] std::uint32_t below(std::uint32_t count) {
    return static_cast<std::uint32_t>(((bits() >> 32U) * count) >> 32U);
  }

  /// Draws a number uniformly from [low, high).
  [[nodiscard]] double uniform(double low, double high) {
    constexpr double kStep = 0x1p-53;
    return low + (high - low) * (static_cast<double>(bits() >> 11U) * kStep);
  }

  /// Draws a nearly normal number with mean 0 and deviation `deviation`, never beyond 3.5
  /// deviations: the sum of four uniform numbers of 16 bits.
  [[nodiscard]] double bell(double deviation) {
    constexpr std::uint64_t kPart = 0xffff;
    const std::uint64_t draw = bits();
    const std::uint64_t sum =
        (draw & kPart) + (draw >> 16U & kPart) + (draw >> 32U & kPart) + (draw >> 48U & kPart);
    // The sum has mean 2 x 65535 and variance (2^32 - 1) / 3, so deviation 37837.2.
    constexpr double kMean = 131070.0;
    constexpr double kDeviation = 37837.2;
    return (static_cast<double>(sum) - kMean) * (deviation / kDeviation);
  }

 private:
  static constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15;

  // A bijection of 64 bits in which every bit of the input moves about half of the output's.
  static std::uint64_t mixed(std::uint64_t value) {
    value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27U)) * 0x94d049bb133111eb;
    return value ^ (value >> 31U);
  }

  std::uint64_t state_;
};

}  // namespace rubato::digits
