// A sum is computed piece by piece, 8 KiB of each leaf at a time. In a piece, blocks of up to eight
// leaves are summed in registers: sum_of() spells out the tree's expression at compile time. The
// sums of blocks are combined as in a binary counter: the left one waits at its level (Pending)
// until its right sibling is complete. With up to eight leaves, the SGD step is part of the loop
// over a block and needs no pieces; with more, it reads the finished piece from the first-level
// cache. Pending takes 240 KiB of the caller's stack.

#include "tree_sum.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "base/core/check.hpp"
#include "base/machine/instruction_set.hpp"
#include "summation_tree.hpp"

namespace rubato {

namespace {

// The bytes of a piece: a whole number of pages of every leaf, and small enough that the few pieces
// needed at once stay in the first-level cache.
constexpr std::size_t kPieceBytes = 8192;
template <class T>
constexpr std::size_t kPiece = kPieceBytes / sizeof(T);

// The number of leaves that are summed in registers.
constexpr std::size_t kBlock = 8;
// The levels of sums of blocks above that, enough for 2^32 leaves.
constexpr std::size_t kMostLevels = 30;

template <class T>
using Piece = std::array<T, kPiece<T>>;

// The sum of one element of Count neighbouring leaves, in the order of the tree.
template <std::size_t Count, class T>
[[gnu::always_inline]] inline T sum_of(const T* const* leaves, std::size_t i) {
  if constexpr (Count == 1) {
    return leaves[0][i];
  } else {
    constexpr std::size_t kLeft = std::bit_floor(Count - 1);
    return sum_of<kLeft>(leaves, i) + sum_of<Count - kLeft>(leaves + kLeft, i);
  }
}

// The block's pointers advanced by `begin`, in an array that a loop can keep in registers.
template <std::size_t Count, class T>
[[gnu::always_inline]] inline std::array<const T*, Count> pointers_of(const T* const* leaves,
                                                                      std::size_t begin) {
  std::array<const T*, Count> at{};
  for (std::size_t leaf = 0; leaf < Count; ++leaf) at[leaf] = leaves[leaf] + begin;
  return at;
}

template <std::size_t Count, class T>
[[gnu::always_inline]] inline void block_loop(const T* const* leaves, std::size_t begin,
                                              T* __restrict out, std::size_t n) {
  const auto at = pointers_of<Count>(leaves, begin);
  for (std::size_t i = 0; i < n; ++i) out[i] = sum_of<Count>(at.data(), i);
}

template <std::size_t Count, bool Momentum, bool Nesterov, class T>
[[gnu::always_inline]] inline void block_step_loop(const T* const* leaves, std::size_t begin,
                                                   T* __restrict parameters, T* __restrict velocity,
                                                   std::size_t n, SgdCoefficients<T> c) {
  const auto at = pointers_of<Count>(leaves, begin);
  T none{};
  for (std::size_t i = 0; i < n; ++i) {
    sgd_element<Momentum, Nesterov>(parameters[i], Momentum ? velocity[i] : none,
                                    sum_of<Count>(at.data(), i), c);
  }
}

// Calls loop.template operator()<count>() for 1 <= count <= kBlock.
template <class Loop>
[[gnu::always_inline]] inline void with_count(std::size_t count, Loop&& loop) {
  switch (count) {
    case 1:
      return loop.template operator()<1>();
    case 2:
      return loop.template operator()<2>();
    case 3:
      return loop.template operator()<3>();
    case 4:
      return loop.template operator()<4>();
    case 5:
      return loop.template operator()<5>();
    case 6:
      return loop.template operator()<6>();
    case 7:
      return loop.template operator()<7>();
    default:
      return loop.template operator()<kBlock>();
  }
}

template <class T>
[[gnu::always_inline]] inline void block_loops(const T* const* leaves, std::size_t count,
                                               std::size_t begin, T* out, std::size_t n) {
  with_count(
      count, [&]<std::size_t Count>()
                 __attribute__((always_inline)) { block_loop<Count>(leaves, begin, out, n); });
}

template <class T>
[[gnu::always_inline]] inline void block_step_loops(const T* const* leaves, std::size_t count,
                                                    std::size_t begin, T* parameters, T* velocity,
                                                    std::size_t n, const SgdCoefficients<T>& c) {
  with_count(
      count, [&]<std::size_t Count>() __attribute__((always_inline)) {
        with_kind_of_step(
            c, [&]<bool Momentum, bool Nesterov>() __attribute__((always_inline)) {
              block_step_loop<Count, Momentum, Nesterov>(leaves, begin, parameters, velocity, n, c);
            });
      });
}

template <class T>
void sum_block(const T* const* leaves, std::size_t count, std::size_t begin, T* out,
               std::size_t n) {
  with_vectors([&]() __attribute__((always_inline)) { block_loops(leaves, count, begin, out, n); });
}

template <class T>
void step_block(const T* const* leaves, std::size_t count, std::size_t begin, T* parameters,
                T* velocity, std::size_t n, const SgdCoefficients<T>& c) {
  with_vectors([&]() __attribute__((always_inline)) {
    block_step_loops(leaves, count, begin, parameters, velocity, n, c);
  });
}

// Sums that wait for their right sibling while the blocks of a piece are summed from left to right;
// at most one for each level.
template <class T>
using Pending = std::array<Piece<T>, kMostLevels>;

// Sets out to the sum of a piece of n elements. Blocks are nodes of the tree, because their size is
// a power of two; the last may be smaller.
template <class T>
void sum_piece(std::span<const T* const> leaves, std::size_t begin, T* out, std::size_t n,
               Pending<T>& pending) {
  const std::size_t blocks = (leaves.size() + kBlock - 1) / kBlock;
  const SummationTree tree(static_cast<std::int64_t>(blocks));
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::size_t first = block * kBlock;
    sum_block(leaves.data() + first, std::min(kBlock, leaves.size() - first), begin, out, n);
    for (TreeNode node{0, static_cast<std::int64_t>(block)}; !tree.is_root(node);
         node = node.parent()) {
      if (!tree.contains(node.sibling())) continue;
      Piece<T>& waiting = pending[static_cast<std::size_t>(node.level)];
      if (node.index % 2 == 0) {
        std::copy_n(out, n, waiting.data());
        break;
      }
      add({out, n}, std::span<const T>(waiting).first(n));
    }
  }
}

template <class T>
void sum_pieces(std::span<const T* const> leaves, std::size_t begin, std::span<T> out) {
  RUBATO_CHECK(!leaves.empty(), "a sum has at least one leaf");
  // NOLINTBEGIN(*-member-init): memory that is written before it is read
  Pending<T> pending;
  Piece<T> sum;
  // NOLINTEND(*-member-init)
  for (std::size_t done = 0; done < out.size(); done += kPiece<T>) {
    const std::size_t n = std::min(kPiece<T>, out.size() - done);
    // The sum is not computed in `out`, which may be one of the leaves.
    sum_piece(leaves, begin + done, sum.data(), n, pending);
    std::copy_n(sum.data(), n, out.data() + done);
  }
}

template <class T>
void sum_and_step_pieces(std::span<const T* const> leaves, std::size_t begin,
                         std::span<T> parameters, std::span<T> velocity,
                         std::span<const SgdRange<T>> ranges) {
  RUBATO_CHECK(!leaves.empty(), "a sum has at least one leaf");
  const std::size_t end = begin + parameters.size();
  RUBATO_CHECK(parameters.empty() || (!ranges.empty() && ranges.back().end >= end),
               "the ranges cover all parameters");
  // NOLINTBEGIN(*-member-init): memory that is written before it is read
  Pending<T> pending;
  Piece<T> gradient;
  // NOLINTEND(*-member-init)
  auto range = ranges.begin();
  for (std::size_t at = begin; at < end;) {
    while (range->end <= at) ++range;
    const SgdCoefficients<T>& c = range->coefficients;
    RUBATO_CHECK(c.momentum == T{0} || !velocity.empty(),
                 "with momentum every parameter has a velocity");
    const std::size_t left = std::min(end, range->end) - at;
    if (range->left_alone) {
      at += left;
      continue;
    }
    T* const parameter = parameters.data() + (at - begin);
    T* const speed = velocity.empty() ? nullptr : velocity.data() + (at - begin);
    if (leaves.size() <= kBlock) {
      step_block(leaves.data(), leaves.size(), at, parameter, speed, left, c);
      at += left;
      continue;
    }
    const std::size_t n = std::min(kPiece<T>, left);
    sum_piece(leaves, at, gradient.data(), n, pending);
    const T* const sum = gradient.data();
    step_block(&sum, 1, 0, parameter, speed, n, c);
    at += n;
  }
}

}  // namespace

void tree_sum(std::span<const float* const> leaves, std::size_t begin, std::span<float> out) {
  sum_pieces(leaves, begin, out);
}
void tree_sum(std::span<const double* const> leaves, std::size_t begin, std::span<double> out) {
  sum_pieces(leaves, begin, out);
}

void tree_sum_sgd(std::span<const float* const> leaves, std::size_t begin,
                  std::span<float> parameters, std::span<float> velocity,
                  std::span<const SgdRange<float>> ranges) {
  sum_and_step_pieces(leaves, begin, parameters, velocity, ranges);
}
void tree_sum_sgd(std::span<const double* const> leaves, std::size_t begin,
                  std::span<double> parameters, std::span<double> velocity,
                  std::span<const SgdRange<double>> ranges) {
  sum_and_step_pieces(leaves, begin, parameters, velocity, ranges);
}

}  // namespace rubato
