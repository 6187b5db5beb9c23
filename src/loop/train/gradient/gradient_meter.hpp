#pragma once

#include <atomic>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include <rubato/loop/optimizer.hpp>
#include <rubato/loop/workers.hpp>
#include <rubato/numbers/sums.hpp>

namespace rubato {

/// Measures squared norms of flat buffers, tensor by tensor, in one pass divided among the threads,
/// to the same bits for every number of threads.
///
/// T is float or double.
template <class T>
class GradientMeter {
 public:
  explicit GradientMeter(const NormBlocks& blocks)
      : blocks_(blocks), squares_(blocks.size()), layers_(blocks.layers()) {}

  /// Returns whether all values are finite; if so, layers() has the squared norms of the tensors.
  [[nodiscard]] bool measure(std::span<const T> values, Workers& workers) {
    std::atomic<bool> finite{true};
    workers.for_each_range(values.size(), [&](std::size_t begin, std::size_t end) {
      blocks_.for_each_within(blocks_.align(begin), blocks_.align(end),
                              [&](std::size_t block, std::size_t from, std::size_t to) {
                                const std::span<const T> part = values.subspan(from, to - from);
                                bool good = false;
                                if (block < blocks_.size()) {
                                  squares_[block] = squared_norm(part);
                                  // A square may overflow although no value is infinite.
                                  good = std::isfinite(squares_[block]) || all_finite(part);
                                } else {
                                  good = all_finite(part);
                                }
                                // Relaxed suffices: the flag is read after the threads have been
                                // joined.
                                if (!good) finite.store(false, std::memory_order_relaxed);
                              });
    });
    std::fill(layers_.begin(), layers_.end(), 0);
    sum_squares(blocks_, squares_, [&](std::size_t layer) -> double& { return layers_[layer]; });
    return finite;
  }

  [[nodiscard]] std::span<const double> layers() const { return layers_; }

 private:
  const NormBlocks& blocks_;
  std::vector<double> squares_;
  std::vector<double> layers_;
};

}  // namespace rubato
