#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/workers.hpp>
#include <rubato/numbers/sums.hpp>

namespace rubato {

/// A gradient and that of the step before, treated like the minibatches of one step: the noise is
/// estimated from them if steps have one minibatch each. Memory is allocated with the first
/// gradients; norms are the same bits for every number of threads.
///
/// take() and forget() become effective with keep(); drop() undoes them.
///
/// T is float or double.
template <class T>
class GradientPair {
 public:
  /// The blocks cover the gradients; they must outlive this object.
  explicit GradientPair(const NormBlocks& blocks)
      : blocks_(blocks),
        squares_of_previous_(blocks.size()),
        squares_of_mean_(blocks.size()),
        previous_layers_(blocks.layers()),
        mean_layers_(blocks.layers()) {}

  /// Stores the gradient of a step. Returns whether there was one before it: then previous_layers()
  /// has the norms of that one, and mean_layers() those of the mean of both.
  [[nodiscard]] bool take(std::span<const T> gradient, Workers& workers) {
    next_is_ = Next::gradient;
    if (previous_.empty()) {
      next_.assign(gradient.begin(), gradient.end());
      return false;
    }
    next_.resize(gradient.size());
    workers.for_each_range(gradient.size(), [&](std::size_t begin, std::size_t end) {
      blocks_.for_each_within(blocks_.align(begin), blocks_.align(end),
                              [&](std::size_t block, std::size_t from, std::size_t to) {
                                take_block(block, gradient.subspan(from, to - from),
                                           std::span<const T>(previous_).subspan(from, to - from),
                                           std::span<T>(next_).subspan(from, to - from));
                              });
    });
    sum(squares_of_previous_, previous_layers_);
    sum(squares_of_mean_, mean_layers_);
    return true;
  }

  /// Forgets the previous gradient, so that the next one has none before it.
  void forget() { next_is_ = Next::none; }

  void keep() {
    if (next_is_ == Next::gradient) previous_.swap(next_);
    if (next_is_ == Next::none) previous_.clear();
    next_is_ = Next::same;
  }
  void drop() { next_is_ = Next::same; }

  /// The squared norms of each tensor.
  [[nodiscard]] std::span<const double> previous_layers() const { return previous_layers_; }
  [[nodiscard]] std::span<const double> mean_layers() const { return mean_layers_; }

  /// Throws Error if the state belongs to another model.
  void visit_state(StateVisitor& state) {
    const bool there = state.has(kName, !previous_.empty());
    if (state.loading()) previous_.assign(there ? blocks_.covered() : 0, T{0});
    if (there) state.values(kName, std::span<T>(previous_));
  }

 private:
  static constexpr std::string_view kName = "gradient_of_previous_step";

  // The gradient that keep() will store.
  enum class Next { same, gradient, none };

  void take_block(std::size_t block, std::span<const T> gradient, std::span<const T> previous,
                  std::span<T> next) {
    squares_of_previous_[block] = squared_norm(previous);
    for (std::size_t i = 0; i < next.size(); ++i) next[i] = (previous[i] + gradient[i]) / T{2};
    squares_of_mean_[block] = squared_norm(std::span<const T>(next));
    std::copy(gradient.begin(), gradient.end(), next.begin());
  }

  void sum(std::span<const double> squares, std::vector<double>& layers) const {
    std::fill(layers.begin(), layers.end(), 0);
    sum_squares(blocks_, squares, [&](std::size_t layer) -> double& { return layers[layer]; });
  }

  const NormBlocks& blocks_;
  // The gradient of the step before; empty if there is none.
  std::vector<T> previous_;
  // The gradient of this step, until keep().
  std::vector<T> next_;
  Next next_is_ = Next::same;
  // Squared norms by block, and by tensor.
  std::vector<double> squares_of_previous_;
  std::vector<double> squares_of_mean_;
  std::vector<double> previous_layers_;
  std::vector<double> mean_layers_;
};

}  // namespace rubato
