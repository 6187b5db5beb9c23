#pragma once

#include <array>
#include <cstdint>

#include <rubato/plan/stream_key.hpp>

namespace rubato {

/// Independent random numbers of a key, standard normal or uniform: the n-th is a function of the
/// key and n, whoever draws it and in whatever order, so threads may divide the draws as they like.
/// The normal numbers of a key are made from its uniform ones; use two keys if you need both.
class NormalNumbers {
 public:
  explicit NormalNumbers(const StreamKey& key);

  /// The n-th pair of standard normal numbers, by Box and Muller (1958) from two numbers of
  /// SplitMix64.
  [[nodiscard]] std::array<double, 2> pair(std::uint64_t n) const;
  /// The n-th standard normal number: the pairs one after the other. Drawing one costs as much as
  /// drawing its pair.
  [[nodiscard]] double operator[](std::uint64_t n) const { return pair(n / 2)[n % 2]; }
  /// The n-th number that is uniform in [0, 1): a multiple of 2^-53.
  [[nodiscard]] double uniform(std::uint64_t n) const;

 private:
  std::uint64_t seed_;
};

}  // namespace rubato
