#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace rubato {

/// The first values of a buffer in blocks that fit the first-level cache, none of which crosses the
/// border of a layer: the units in which squared norms are taken.
///
/// The squared norm of a block is squared_norm() of its values, that of a layer the sum over its
/// blocks in ascending order. So how the values are shared out over threads changes no bit of a
/// norm, as long as blocks stay whole: align() says where a buffer may be cut.
class NormBlocks {
 public:
  struct Block {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t layer = 0;
  };

  /// None: no norms are taken.
  NormBlocks() = default;

  /// Layer i is [layer_ends[i - 1], layer_ends[i]), the first one begins at 0. They ascend.
  explicit NormBlocks(std::span<const std::size_t> layer_ends);

  [[nodiscard]] bool empty() const { return blocks_.empty(); }
  [[nodiscard]] std::size_t size() const { return blocks_.size(); }
  [[nodiscard]] std::size_t layers() const { return layers_; }
  [[nodiscard]] const Block& operator[](std::size_t i) const { return blocks_[i]; }
  /// Values that lie in blocks: [0, covered()).
  [[nodiscard]] std::size_t covered() const { return empty() ? 0 : blocks_.back().end; }

  /// The number of the first block that begins at `value` or behind it.
  [[nodiscard]] std::size_t first_from(std::size_t value) const {
    const auto found =
        std::lower_bound(blocks_.begin(), blocks_.end(), value,
                         [](const Block& block, std::size_t at) { return block.begin < at; });
    return static_cast<std::size_t>(found - blocks_.begin());
  }
  /// The first place from `value` on that is in the middle of no block. Ascends with `value`.
  [[nodiscard]] std::size_t align(std::size_t value) const {
    if (value >= covered()) return value;
    const std::size_t block = first_from(value);
    return block == size() ? covered() : blocks_[block].begin;
  }

  /// Calls task(i, begin, end) for every block i within [begin, end) and task(size(), begin, end)
  /// for what lies behind all blocks. Both ends are aligned.
  template <class Task>
  void for_each_within(std::size_t begin, std::size_t end, Task&& task) const {
    for (std::size_t i = first_from(begin); i < size() && blocks_[i].begin < end; ++i) {
      task(i, blocks_[i].begin, blocks_[i].end);
      begin = blocks_[i].end;
    }
    if (begin < end) task(size(), begin, end);
  }

 private:
  std::size_t layers_ = 0;
  std::vector<Block> blocks_;
};

/// What each layer's squares are, from those of the blocks; `of_layer(layer)` is where to add it.
template <class OfLayer>
void sum_squares(const NormBlocks& blocks, std::span<const double> squares, OfLayer&& of_layer) {
  for (std::size_t i = 0; i < blocks.size();) {
    const std::size_t layer = blocks[i].layer;
    double sum = 0;
    for (; i < blocks.size() && blocks[i].layer == layer; ++i) sum += squares[i];
    of_layer(layer) += sum;
  }
}

}  // namespace rubato
