#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace rubato {

/// A lock-free stack of distinct numbers below a limit, used as a free list.
///
/// Thread safety: push() and pop() may be called by any number of threads at once. Everything that
/// a thread did before push(i) happens before the return of the pop() that returns i. clear() must
/// not run concurrently with anything else.
///
/// Invariants:
///  1. next_[i] is written only by the thread that pushes i, which owns it then.
///  2. top_ changes only by compare-and-exchange. Its upper half counts the changes, so
///     that a stack which looks the same again is not mistaken for the old one (ABA problem).
///
/// `Atomic` is std::atomic, or a model checker's.
template <template <class> class Atomic = std::atomic>
class IndexStack {
 public:
  /// Creates an empty stack for the numbers 0 to limit - 1; limit < 2^32.
  explicit IndexStack(std::size_t limit) : next_(limit) {}

  void push(std::uint32_t index) {
    // Relaxed: the value is only a first guess; the exchange checks it.
    std::uint64_t top = top_.load(std::memory_order_relaxed);
    do {
      // Relaxed: the exchange below publishes it.
      next_[index].store(index_in(top), std::memory_order_relaxed);
      // Release: the pusher's work and the store above become visible to the thread that pops the
      // number.
    } while (!top_.compare_exchange_weak(top, changed(top, index), std::memory_order_release,
                                         std::memory_order_relaxed));
  }

  [[nodiscard]] std::optional<std::uint32_t> pop() {
    // Acquire, here and on failure below: the pusher's store to next_, and its work before it
    // pushed the number, must be visible.
    std::uint64_t top = top_.load(std::memory_order_acquire);
    while (index_in(top) != kNone) {
      const std::uint32_t index = index_in(top);
      // Relaxed: if another thread pops and pushes this number meanwhile, the value may be a later
      // one, but then the count in top_ has changed and the exchange fails.
      const std::uint32_t next = next_[index].load(std::memory_order_relaxed);
      // Acquire on failure is for the next round. On success the exchange finds the value that was
      // already acquired and needs nothing more; the changes form one release sequence, so a thread
      // that acquires a later one still sees the work of the pushers of all numbers below.
      if (top_.compare_exchange_weak(top, changed(top, next), std::memory_order_acquire,
                                     std::memory_order_acquire)) {
        return index;
      }
    }
    return std::nullopt;
  }

  void clear() {
    // Relaxed: no other thread uses the stack now.
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

// The kernels below work on contiguous arrays. Every element is computed independently, with each
// operation rounded once (no fused multiply-add), so the bits do not depend on the length, on where
// an array is cut, or on the instruction set. On x86-64 the widest instruction set of the machine
// is chosen at run time. T is float or double.

/// into[i] += from[i]. The spans have the same size and do not overlap.
void add(std::span<float> into, std::span<const float> from);
void add(std::span<double> into, std::span<const double> from);

/// True if no element is infinite or NaN.
[[nodiscard]] bool all_finite(std::span<const float> values);
[[nodiscard]] bool all_finite(std::span<const double> values);

/// The sum of squares, in double precision and a fixed order: sixteen lanes, element i in lane i
/// mod 16, and the lanes added pairwise.
[[nodiscard]] double squared_norm(std::span<const float> values);
[[nodiscard]] double squared_norm(std::span<const double> values);
/// The same of the products values[i] x weights[i]. The spans have the same size.
[[nodiscard]] double squared_norm(std::span<const float> values, std::span<const float> weights);
[[nodiscard]] double squared_norm(std::span<const double> values, std::span<const double> weights);

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
/// This is torch.optim.SGD with dampening 0 (Sutskever et al. 2013 as modified there; the first
/// step from v = 0 equals its v = d). All spans have the same size; `velocity` is not read or
/// written, and may be empty, when momentum is 0.
void sgd_step(std::span<float> parameters, std::span<float> velocity,
              std::span<const float> gradient, const SgdCoefficients<float>& coefficients);
void sgd_step(std::span<double> parameters, std::span<double> velocity,
              std::span<const double> gradient, const SgdCoefficients<double>& coefficients);

/// The first values of a buffer in blocks that fit the first-level cache and do not cross the
/// border of a layer: the units in which squared norms are computed.
///
/// The squared norm of a block is squared_norm() of its values, and with weights each block has a
/// second one, that of its weighted values; the norm of a layer is the sum over its blocks in
/// ascending order. The distribution of values over threads therefore changes no bit of a norm, as
/// long as blocks stay whole: align() says where a buffer may be cut.
class NormBlocks {
 public:
  struct Block {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t layer = 0;
  };

  /// Creates no blocks: no norms are computed.
  NormBlocks() = default;

  /// Layer i is [layer_ends[i - 1], layer_ends[i]), and the first begins at 0. The ends ascend.
  explicit NormBlocks(std::span<const std::size_t> layer_ends);

  /// Gives the blocks of values of type T, float or double, a second norm. All copies read these
  /// covered() weights, which must outlive them and may change between steps.
  template <class T>
  void weigh_by(std::span<const T> weights) {
    std::get<std::span<const T>>(weights_) = weights;
    norms_ = 2;
  }
  /// The number of norms of each block.
  [[nodiscard]] std::size_t norms() const { return norms_; }
  /// The number of squares of all blocks.
  [[nodiscard]] std::size_t squares() const { return size() * norms_; }
  /// The squares of a block among those of all blocks.
  template <class Number>
  [[nodiscard]] std::span<Number> of_block(std::size_t block, std::span<Number> squares) const {
    return squares.subspan(block * norms_, norms_);
  }
  /// Computes the squares of a block, which has these values.
  template <class T>
  void measure(std::size_t block, std::span<const T> values, std::span<double> squares) const {
    squares.front() = squared_norm(values);
    if (norms_ == 1) return;
    const std::span<const T> weights = std::get<std::span<const T>>(weights_);
    squares.back() = squared_norm(values, weights.subspan(blocks_[block].begin, values.size()));
  }

  [[nodiscard]] bool empty() const { return blocks_.empty(); }
  [[nodiscard]] std::size_t size() const { return blocks_.size(); }
  [[nodiscard]] std::size_t layers() const { return layers_; }
  [[nodiscard]] const Block& operator[](std::size_t i) const { return blocks_[i]; }
  /// The number of values in blocks, which are [0, covered()).
  [[nodiscard]] std::size_t covered() const { return empty() ? 0 : blocks_.back().end; }

  /// The number of the first block that begins at or after `value`.
  [[nodiscard]] std::size_t first_from(std::size_t value) const {
    const auto found =
        std::lower_bound(blocks_.begin(), blocks_.end(), value,
                         [](const Block& block, std::size_t at) { return block.begin < at; });
    return static_cast<std::size_t>(found - blocks_.begin());
  }
  /// The first position from `value` on that is not inside a block. Ascends with `value`.
  [[nodiscard]] std::size_t align(std::size_t value) const {
    if (value >= covered()) return value;
    const std::size_t block = first_from(value);
    return block == size() ? covered() : blocks_[block].begin;
  }

  /// Calls task(i, begin, end) for every block i within [begin, end) and task(size(), begin, end)
  /// for the values after all blocks. Both ends must be aligned.
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
  std::size_t norms_ = 1;
  std::tuple<std::span<const float>, std::span<const double>> weights_{};
};

/// Adds the squares of each layer's blocks to of_layer(layer), which returns a reference: those of
/// norm number `norm`.
template <class OfLayer>
void sum_squares(const NormBlocks& blocks, std::span<const double> squares, OfLayer&& of_layer,
                 std::size_t norm = 0) {
  for (std::size_t i = 0; i < blocks.size();) {
    const std::size_t layer = blocks[i].layer;
    double sum = 0;
    for (; i < blocks.size() && blocks[i].layer == layer; ++i) {
      sum += blocks.of_block(i, squares)[norm];
    }
    of_layer(layer) += sum;
  }
}

/// The numbers of a minibatch that are summed along with its gradient, in the same order.
struct StepScalars {
  /// Loss of the minibatch: its mean over the samples, or a sum over weights.
  double loss = 0;
  /// The weights of the minibatch, if its loss is a sum over weights.
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

/// The number that identifies a partial sum to its owner.
enum class SumId : std::uint32_t {};

/// The sum over some leaves of a step. The memory belongs to a buffer pool.
template <class T>
struct PartialSum {
  /// The gradient, followed by other values that are averaged over minibatches.
  std::span<T> values;
  StepScalars scalars;
  /// For each block and each of its norms, the sum over the leaves of the squared norm of the
  /// leaf's values in it, in the order of the tree; kNotTaken if the sum is a single leaf whose
  /// norm has not been computed. Empty if no norms are needed.
  std::span<double> squares;
  static constexpr double kNotTaken = -1;

  /// The squares of a block, computed if they were not yet.
  std::span<double> squares_of(const NormBlocks& blocks, std::size_t block) {
    const std::span<double> of = blocks.of_block(block, squares);
    if (of.front() == kNotTaken) {
      const auto [begin, end, layer] = blocks[block];
      blocks.measure(block, std::span<const T>(values).subspan(begin, end - begin), of);
    }
    return of;
  }
  /// Adds the squares of a block of `other`, both computed if they were not yet.
  void add_squares(PartialSum& other, const NormBlocks& blocks, std::size_t block) {
    const std::span<double> into = squares_of(blocks, block);
    const std::span<const double> from = other.squares_of(blocks, block);
    for (std::size_t i = 0; i < into.size(); ++i) into[i] += from[i];
  }
  void take_squares(const NormBlocks& blocks) {
    for (std::size_t i = 0; i < blocks.size(); ++i) squares_of(blocks, i);
  }

  /// Adds the values [begin, end) of `other`, and their squares, block by block: a leaf's norm is
  /// computed while the addition has its values in the first-level cache, and so needs no pass over
  /// memory. Both ends must be aligned; `blocks` is empty if no norms are needed. The only change
  /// in `other` is that missing squares are computed.
  void add_range(PartialSum& other, const NormBlocks& blocks, std::size_t begin, std::size_t end) {
    blocks.for_each_within(begin, end, [&](std::size_t block, std::size_t from, std::size_t to) {
      if (block < blocks.size()) add_squares(other, blocks, block);
      add(values.subspan(from, to - from),
          std::span<const T>(other.values).subspan(from, to - from));
    });
  }
};

}  // namespace rubato
