#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/optimizer.hpp>
#include <rubato/loop/workers.hpp>
#include <rubato/numbers/rule.hpp>
#include <rubato/numbers/sums.hpp>

#include "loop/runtime/step_executor.hpp"

namespace rubato {

/// Returns whether no value is infinite or NaN. All threads search.
template <class T>
[[nodiscard]] bool is_finite(std::span<const T> values, Workers& workers) {
  std::atomic<bool> finite{true};
  workers.for_each_range(values.size(), [&](std::size_t begin, std::size_t end) {
    // Relaxed suffices: the flag is read after the threads have been joined.
    if (!all_finite(values.subspan(begin, end - begin))) {
      finite.store(false, std::memory_order_relaxed);
    }
  });
  return finite;
}

/// Sums the squares of blocks to those of layers, one norm after the other.
inline void sum_layers(const NormBlocks& blocks, std::span<const double> squares,
                       std::span<double> layers) {
  std::ranges::fill(layers, 0);
  for (std::size_t norm = 0; norm < blocks.norms(); ++norm) {
    const std::span<double> of_norm = layers.subspan(norm * blocks.layers(), blocks.layers());
    sum_squares(
        blocks, squares, [&](std::size_t layer) -> double& { return of_norm[layer]; }, norm);
  }
}

/// Measures squared norms of flat buffers, tensor by tensor, in one pass divided among the threads,
/// to the same bits for every number of threads.
///
/// T is float or double.
template <class T>
class GradientMeter {
 public:
  explicit GradientMeter(const NormBlocks& blocks)
      : blocks_(blocks), squares_(blocks.squares()), layers_(blocks.layers() * blocks.norms()) {}

  /// Returns whether all values are finite; if so, layers() has the squared norms of the tensors.
  [[nodiscard]] bool measure(std::span<const T> values, Workers& workers) {
    std::atomic<bool> finite{true};
    workers.for_each_range(values.size(), [&](std::size_t begin, std::size_t end) {
      blocks_.for_each_within(blocks_.align(begin), blocks_.align(end),
                              [&](std::size_t block, std::size_t from, std::size_t to) {
                                const std::span<const T> part = values.subspan(from, to - from);
                                bool good = false;
                                if (block < blocks_.size()) {
                                  const auto squares =
                                      blocks_.of_block(block, std::span<double>(squares_));
                                  blocks_.measure(block, part, squares);
                                  // A square may overflow although no value is infinite.
                                  good = std::isfinite(squares.front()) || all_finite(part);
                                } else {
                                  good = all_finite(part);
                                }
                                // Relaxed suffices: the flag is read after the threads have been
                                // joined.
                                if (!good) finite.store(false, std::memory_order_relaxed);
                              });
    });
    sum_layers(blocks_, squares_, layers_);
    return finite;
  }

  /// The squared norms of each tensor, in norm number `norm` of the blocks.
  [[nodiscard]] std::span<const double> layers(std::size_t norm = 0) const {
    return std::span(layers_).subspan(norm * blocks_.layers(), blocks_.layers());
  }

 private:
  const NormBlocks& blocks_;
  std::vector<double> squares_;
  std::vector<double> layers_;
};

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
        squares_of_previous_(blocks.squares()),
        squares_of_mean_(blocks.squares()),
        previous_layers_(blocks.layers() * blocks.norms()),
        mean_layers_(blocks.layers() * blocks.norms()) {}

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
    sum_layers(blocks_, squares_of_previous_, previous_layers_);
    sum_layers(blocks_, squares_of_mean_, mean_layers_);
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

  /// The squared norms of each tensor, in norm number `norm` of the blocks.
  [[nodiscard]] std::span<const double> previous_layers(std::size_t norm = 0) const {
    return of_norm(previous_layers_, norm);
  }
  [[nodiscard]] std::span<const double> mean_layers(std::size_t norm = 0) const {
    return of_norm(mean_layers_, norm);
  }

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
    const auto measure = [&](std::span<const T> values, std::vector<double>& squares) {
      blocks_.measure(block, values, blocks_.of_block(block, std::span<double>(squares)));
    };
    measure(previous, squares_of_previous_);
    for (std::size_t i = 0; i < next.size(); ++i) next[i] = (previous[i] + gradient[i]) / T{2};
    measure(next, squares_of_mean_);
    std::copy(gradient.begin(), gradient.end(), next.begin());
  }

  [[nodiscard]] std::span<const double> of_norm(const std::vector<double>& layers,
                                                std::size_t norm) const {
    return std::span(layers).subspan(norm * blocks_.layers(), blocks_.layers());
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

/// The norms of a step's gradient that are needed.
struct MeterNeeds {
  /// The norms of each parameter group, with the mean over the minibatches.
  bool groups = false;
  /// The same in the optimizer's metric, besides; needs `groups`.
  bool metric = false;
  /// The norms of each tensor, with the weights'.
  bool layers = false;
  /// The norm of the whole gradient.
  bool norm = false;

  [[nodiscard]] bool any() const { return groups || layers || norm; }
};

/// Measures the norms of a step's gradient, and whether it is finite, in one pass over it, to the
/// same bits for every number of threads.
///
/// T is float or double.
template <class T>
class StepMeter {
 public:
  /// `weight_decays` has one element for each group.
  StepMeter(const ParameterLayout& layout, const MeterNeeds& needs,
            std::vector<double> weight_decays);

  /// Reads the optimizer's metric, if it is needed; called before the minibatches are computed.
  void begin_step(const FlatOptimizer<T>& optimizer, Workers& workers) {
    if (needs_.metric) has_metric_ = optimizer.fill_metric(diagonal_, workers);
  }

  /// The blocks of which the reducer has to sum squared norms; empty if no group norms are needed.
  [[nodiscard]] const NormBlocks& blocks_of_sum() const {
    return needs_.groups ? blocks_ : no_blocks_;
  }

  /// Returns whether all values of the sum are finite; if so, the getters below are of this step,
  /// whose size is StepPlan::size_in_minibatches().
  [[nodiscard]] bool measure(const StepSum<T>& sum, double size, std::span<const T> parameters,
                             Workers& workers);

  /// The norm of the mean gradient, if something was measured.
  [[nodiscard]] std::optional<double> gradient_norm() const { return gradient_norm_; }
  /// The norms of each group; empty if they are not needed.
  [[nodiscard]] std::span<const GradientNorms> groups() const {
    return needs_.groups ? std::span<const GradientNorms>(groups_)
                         : std::span<const GradientNorms>();
  }
  /// The same in the optimizer's metric; empty if that is not needed, or there is none yet.
  [[nodiscard]] std::span<const GradientNorms> metric_groups() const {
    return has_metric_ ? std::span<const GradientNorms>(metric_groups_)
                       : std::span<const GradientNorms>();
  }
  /// True if groups() compares this step with the one before, of one minibatch each.
  [[nodiscard]] bool from_pair() const { return from_pair_; }
  /// The norms of each tensor in the mean gradient.
  [[nodiscard]] std::span<const ParameterNorms> layers() const { return layers_; }

  /// Makes layers() the norms of the gradient that is applied: `factor` times the sum, which has
  /// been changed if `changed` is not empty.
  void set_applied(double factor, std::span<const T> changed, Workers& workers);

  /// Makes the next step one without a predecessor, because this one was not applied.
  void forget_pair() { pair_.forget(); }
  /// Accept or discard the measurements of this step for those after it.
  void keep() { pair_.keep(); }
  void drop() { pair_.drop(); }
  void visit_state(StateVisitor& state) {
    if (needs_.groups) pair_.visit_state(state);
  }

 private:
  void measure_groups(const StepSum<T>& sum, double size, bool finite, Workers& workers);
  void sum_groups(const StepSum<T>& sum, double size, std::size_t norm,
                  std::vector<GradientNorms>& groups) const;
  void sum_pair(std::size_t norm, std::vector<GradientNorms>& groups) const;
  [[nodiscard]] bool measure_pair(std::span<const T> gradient, double size, Workers& workers);
  void measure_layers(double of_mean, std::span<const T> parameters, Workers& workers);

  const ParameterLayout& layout_;
  MeterNeeds needs_;
  std::vector<double> weight_decays_;
  // The diagonal of the optimizer's metric, the weights of the blocks; empty if not needed.
  std::vector<T> diagonal_;
  bool has_metric_ = false;
  NormBlocks blocks_;
  NormBlocks no_blocks_;
  GradientMeter<T> gradient_meter_;
  // Used for steps of one minibatch.
  GradientPair<T> pair_;
  GradientMeter<T> weight_meter_;
  std::optional<double> gradient_norm_;
  std::vector<GradientNorms> groups_;
  std::vector<GradientNorms> metric_groups_;
  bool from_pair_ = false;
  std::vector<ParameterNorms> layers_;
};

extern template class StepMeter<float>;
extern template class StepMeter<double>;

}  // namespace rubato
