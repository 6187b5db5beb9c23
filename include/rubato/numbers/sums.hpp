#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rubato {

/// A lock-free stack of numbers below a limit, each of which is in it at most once: a free list.
///
/// Thread safety: push() and pop() may be called by any number of threads at once. Everything that
/// a thread did before push(i) happens before the return of the pop() that gives i out again.
/// clear() must not run beside anything else.
///
/// Invariants:
///  1. next_[i] is written only by the one who pushes i, which nobody else has then.
///  2. top_ changes only by compare-and-exchange. Its upper half counts the changes: a stack that
///     looks the same again is not taken for the same (the ABA problem).
///
/// `Atomic` is std::atomic, or a model checker's.
template <template <class> class Atomic = std::atomic>
class IndexStack {
 public:
  /// For the numbers 0 to limit - 1; limit < 2^32.
  explicit IndexStack(std::size_t limit) : next_(limit) {}

  void push(std::uint32_t index) {
    // Relaxed: only a first guess, the exchange checks it.
    std::uint64_t top = top_.load(std::memory_order_relaxed);
    do {
      // Relaxed: the exchange below publishes it.
      next_[index].store(index_in(top), std::memory_order_relaxed);
      // Release: what the pusher did, and the store above, reach whoever pops the number.
    } while (!top_.compare_exchange_weak(top, changed(top, index), std::memory_order_release,
                                         std::memory_order_relaxed));
  }

  [[nodiscard]] std::optional<std::uint32_t> pop() {
    // Acquire, here and on failure below: what the pusher stored in next_, and what it did before
    // it gave the number back, must be visible.
    std::uint64_t top = top_.load(std::memory_order_acquire);
    while (index_in(top) != kNone) {
      const std::uint32_t index = index_in(top);
      // Relaxed: where another thread pops and pushes this number meanwhile, the value may be a
      // later one, but then the count in top_ has changed and the exchange fails.
      const std::uint32_t next = next_[index].load(std::memory_order_relaxed);
      // Acquire on failure: for the next round. On success it finds the very value that was
      // acquired, and needs nothing; the changes are one release sequence, so that whoever acquires
      // a later one still sees what the pushers of all numbers below did.
      if (top_.compare_exchange_weak(top, changed(top, next), std::memory_order_acquire,
                                     std::memory_order_acquire)) {
        return index;
      }
    }
    return std::nullopt;
  }

  void clear() {
    // Relaxed: no other thread is here.
    top_.store(changed(top_.load(std::memory_order_relaxed), kNone), std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::uint64_t changed(std::uint64_t old, std::uint32_t index) {
    return ((old >> 32) + 1) << 32 | index;
  }
  static constexpr std::uint32_t index_in(std::uint64_t top) {
    return static_cast<std::uint32_t>(top);
  }

  std::vector<Atomic<std::uint32_t>> next_;
  alignas(128) Atomic<std::uint64_t> top_{kNone};
};

// Kernels over contiguous arrays. Every element is computed by itself, with each operation rounded
// once (no fused multiply-add), so that neither the length, nor where an array is cut, nor the
// instruction set changes a bit. On x86-64 the widest instruction set of the machine is taken at
// run time. T is float or double.

/// into[i] += from[i]. The spans have the same size and do not overlap.
void add(std::span<float> into, std::span<const float> from);
void add(std::span<double> into, std::span<const double> from);

/// Whether no element is infinite or NaN.
[[nodiscard]] bool all_finite(std::span<const float> values);
[[nodiscard]] bool all_finite(std::span<const double> values);

/// The sum of the squares, in double precision. Its order is fixed: sixteen lanes, element i in
/// lane i mod 16, and the lanes added two by two.
[[nodiscard]] double squared_norm(std::span<const float> values);
[[nodiscard]] double squared_norm(std::span<const double> values);

/// The coefficients of one SGD step.
template <class T>
struct SgdCoefficients {
  /// Multiplies the gradient sum first: 1 / minibatches for the mean, 1 for the sum.
  T gradient_factor = 1;
  T learning_rate = 0;
  T momentum = 0;
  T weight_decay = 0;
  bool nesterov = false;
  /// Bounds every element of gradient_factor x gradient to [-clip, clip]; above 0.
  T clip = std::numeric_limits<T>::infinity();

  friend bool operator==(const SgdCoefficients&, const SgdCoefficients&) = default;
};

/// One step of stochastic gradient descent with momentum, in one pass over memory:
///
///     d = clamp(gradient_factor x gradient, -clip, clip) + weight_decay x parameter
///     v = momentum x v + d
///     parameter -= learning_rate x (nesterov ? d + momentum x v : v)
///
/// which is torch.optim.SGD with dampening 0 (Sutskever et al. 2013 as changed there; the first
/// step from v = 0 is the same as its v = d). All spans have the same size; `velocity` is empty,
/// and left alone, when momentum is 0.
void sgd_step(std::span<float> parameters, std::span<float> velocity,
              std::span<const float> gradient, const SgdCoefficients<float>& coefficients);
void sgd_step(std::span<double> parameters, std::span<double> velocity,
              std::span<const double> gradient, const SgdCoefficients<double>& coefficients);

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

/// The numbers of a minibatch that are summed along with its gradient, in the same order.
struct StepScalars {
  /// Loss of the minibatch: its mean over the samples, or a sum over weights.
  double loss = 0;
  /// The weights of the minibatch, where its loss is a sum over them.
  double weight = 0;
  /// Minibatches in the sum, and how many of them have a weight.
  std::int64_t minibatches = 0;
  std::int64_t weighted = 0;

  StepScalars& operator+=(const StepScalars& other) {
    loss += other.loss;
    weight += other.weight;
    minibatches += other.minibatches;
    weighted += other.weighted;
    return *this;
  }
};

/// The number by which a partial sum is known to whoever keeps it.
enum class SumId : std::uint32_t {};

/// The sum over some leaves of a step. The memory is a buffer pool's.
template <class T>
struct PartialSum {
  /// The gradient, and behind it whatever else is averaged over minibatches.
  std::span<T> values;
  StepScalars scalars;
  /// Of each block, the sum over the leaves of the squared norm of the leaf's values there, in the
  /// order of the tree; kNotTaken where the sum is a single leaf whose norm is yet to be taken.
  /// Empty where nobody wants norms.
  std::span<double> squares;
  static constexpr double kNotTaken = -1;

  /// The squares of a block, taken if they were not.
  double& squares_of(const NormBlocks& blocks, std::size_t block) {
    double& square = squares[block];
    if (square == kNotTaken) {
      const auto [begin, end, layer] = blocks[block];
      square = squared_norm(std::span<const T>(values).subspan(begin, end - begin));
    }
    return square;
  }
  void take_squares(const NormBlocks& blocks) {
    for (std::size_t i = 0; i < blocks.size(); ++i) squares_of(blocks, i);
  }

  /// Adds the values [begin, end) of `other`, and their squares: block by block, so that a leaf's
  /// norm is taken while its values are in the first-level cache for the addition, and costs no
  /// pass over memory. Both ends are aligned; `blocks` is empty where nobody wants norms. Of
  /// `other` nothing changes but squares that were not taken.
  void add_range(PartialSum& other, const NormBlocks& blocks, std::size_t begin, std::size_t end) {
    blocks.for_each_within(begin, end, [&](std::size_t block, std::size_t from, std::size_t to) {
      if (block < blocks.size()) squares_of(blocks, block) += other.squares_of(blocks, block);
      add(values.subspan(from, to - from),
          std::span<const T>(other.values).subspan(from, to - from));
    });
  }
};

}  // namespace rubato
