#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rubato {

/// What computes the model of a run, for its record.
struct EngineFacts {
  /// Names of libraries, each with what there is to be known of it.
  using Facts = std::vector<std::pair<std::string, std::string>>;

  /// "eigen" or "libtorch".
  std::string engine{};
  /// The kernels of each library that has several: {"OpenBLAS", "Haswell"}. Empty where the library
  /// does not say, or is not there.
  Facts kernels{};
  /// Their versions: {"torch", "1.13.1"}.
  Facts versions{};
};

/// The kernels for people: "OpenBLAS Haswell, ATen AVX2, oneDNN avx512_core".
[[nodiscard]] std::string kernels_text(const EngineFacts::Facts& kernels);

}  // namespace rubato
