#pragma once

#include <cstddef>

#include <rubato/state/named_array.hpp>

namespace rubato {

/// A parameter tensor in training.
struct TrainedArray {
  NamedArray array;
  /// Where it ends in the flat parameters, padding behind it included.
  std::size_t end = 0;
};

}  // namespace rubato
