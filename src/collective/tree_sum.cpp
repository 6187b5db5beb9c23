#include <algorithm>
#include <array>
#include <bit>

#include <rubato/collective/summation_tree.hpp>
#include <rubato/collective/tree_sum.hpp>
#include <rubato/core/check.hpp>

#include "vector_clones.hpp"

namespace rubato {

namespace {

// Bytes of a piece: a page, so that every leaf's stream moves on by whole pages, and the few pieces
// that a sum needs at once stay in the first-level cache.
constexpr std::size_t kPieceBytes = 4096;
template <class T>
constexpr std::size_t kPiece = kPieceBytes / sizeof(T);

// Leaves that are summed in registers.
constexpr std::size_t kBlock = 8;
// Levels of sums of blocks above that; enough for 2^32 leaves.
constexpr std::size_t kMostLevels = 30;

template <class T>
using Piece = std::array<T, kPiece<T>>;

// The sum of Count neighbours in the order of the tree, of one element.
template <std::size_t Count, class T>
[[gnu::always_inline]] inline T sum_of(const T* const* leaves, std::size_t i) {
  if constexpr (Count == 1) {
    return leaves[0][i];
  } else {
    constexpr std::size_t kLeft = std::bit_floor(Count - 1);
    return sum_of<kLeft>(leaves, i) + sum_of<Count - kLeft>(leaves + kLeft, i);
  }
}

template <std::size_t Count, class T>
[[gnu::always_inline]] inline void block_loop(const T* const* leaves, std::size_t begin,
                                              T* __restrict out, std::size_t n) {
  // The pointers, where the loop need not fetch them anew.
  std::array<const T*, Count> at{};
  for (std::size_t leaf = 0; leaf < Count; ++leaf) at[leaf] = leaves[leaf] + begin;
  for (std::size_t i = 0; i < n; ++i) out[i] = sum_of<Count>(at.data(), i);
}

template <class T>
[[gnu::always_inline]] inline void block_loops(const T* const* leaves, std::size_t count,
                                               std::size_t begin, T* out, std::size_t n) {
  switch (count) {
    case 1:
      return block_loop<1>(leaves, begin, out, n);
    case 2:
      return block_loop<2>(leaves, begin, out, n);
    case 3:
      return block_loop<3>(leaves, begin, out, n);
    case 4:
      return block_loop<4>(leaves, begin, out, n);
    case 5:
      return block_loop<5>(leaves, begin, out, n);
    case 6:
      return block_loop<6>(leaves, begin, out, n);
    case 7:
      return block_loop<7>(leaves, begin, out, n);
    default:
      return block_loop<kBlock>(leaves, begin, out, n);
  }
}

// target_clones wants plain functions.
RUBATO_VECTOR_CLONES void sum_block(const float* const* leaves, std::size_t count,
                                    std::size_t begin, float* out, std::size_t n) {
  block_loops(leaves, count, begin, out, n);
}
RUBATO_VECTOR_CLONES void sum_block(const double* const* leaves, std::size_t count,
                                    std::size_t begin, double* out, std::size_t n) {
  block_loops(leaves, count, begin, out, n);
}

// The sums that wait for their right sibling while the blocks of a piece are summed from left to
// right: at most one for each level.
template <class T>
using Pending = std::array<Piece<T>, kMostLevels>;

// out = the sum of a piece of n elements. Blocks are nodes of the tree, as their size is a power of
// two; the last may be smaller.
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
    // Not into `out`, which may be one of the leaves.
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
    const std::size_t n = std::min({kPiece<T>, end - at, range->end - at});
    sum_piece(leaves, at, gradient.data(), n, pending);
    sgd_step(parameters.subspan(at - begin, n),
             velocity.empty() ? velocity : velocity.subspan(at - begin, n),
             std::span<const T>(gradient).first(n), range->coefficients);
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
