#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <rubato/collective/kernels.hpp>
#include <rubato/collective/norm_blocks.hpp>

namespace rubato {

/// The numbers of a minibatch that are summed along with its gradient, in the same order.
struct StepScalars {
  /// Loss of the minibatch (its mean over the samples).
  double loss = 0;
  /// Minibatches in the sum.
  std::int64_t minibatches = 0;

  StepScalars& operator+=(const StepScalars& other) {
    loss += other.loss;
    minibatches += other.minibatches;
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
