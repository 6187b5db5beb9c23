#include <algorithm>

#include <rubato/numbers/sums.hpp>

#include "base/core/check.hpp"

namespace rubato {

namespace {

// A block has at most 8 KiB of float, so that two of them fit the first-level cache.
constexpr std::size_t kMostValues = 2048;

}  // namespace

NormBlocks::NormBlocks(std::span<const std::size_t> layer_ends) : layers_(layer_ends.size()) {
  std::size_t begin = 0;
  for (std::size_t layer = 0; layer < layers_; ++layer) {
    RUBATO_CHECK(layer_ends[layer] >= begin, "layers ascend");
    while (begin < layer_ends[layer]) {
      const std::size_t end = std::min(begin + kMostValues, layer_ends[layer]);
      blocks_.push_back({.begin = begin, .end = end, .layer = layer});
      begin = end;
    }
  }
}

}  // namespace rubato
