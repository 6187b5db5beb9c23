#pragma once

#include <string>
#include <string_view>

namespace rubato {

/// Operators of libtorch that rubato computes itself, forward and backward, where it is faster
/// (docs/operators.md): of float32 tensors on the CPU. Anything else is libtorch's as ever.
///
/// Their bits do not depend on the CPU, nor on threads. Pooling has libtorch's bits; the others
/// differ from libtorch's by rounding.
struct OwnOperators {
  /// Convolution of images with few channels. Needs AVX2 and FMA, as does pooling.
  bool convolution = true;
  bool max_pool = true;
  /// In training.
  bool batch_norm = true;

  [[nodiscard]] static constexpr OwnOperators none() {
    return {.convolution = false, .max_pool = false, .batch_norm = false};
  }
  friend bool operator==(const OwnOperators&, const OwnOperators&) = default;
};

/// From `all`, `none`, or names with commas between them: convolution, max-pool, batch-norm. Throws
/// Error for other text.
[[nodiscard]] OwnOperators parse_own_operators(std::string_view text);
/// The text that gives it.
[[nodiscard]] std::string to_string(const OwnOperators& operators);

}  // namespace rubato
