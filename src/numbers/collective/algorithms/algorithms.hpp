#pragma once

#include <vector>

#include "numbers/collective/schedule.hpp"

namespace rubato::algorithms {

/// The first half of an all-reduce. In the end a rank has the full sum of all elements that it has
/// not sent away.
///
/// If `mirrored`, the second half is the first one backwards, with copies instead of additions. If
/// not, every rank has the whole sum already.
struct Reduction {
  std::vector<TransferPhase> phases;
  bool mirrored = true;
};

[[nodiscard]] Reduction sequential(Rank ranks, std::int64_t length);
[[nodiscard]] Reduction ring(Rank ranks, std::int64_t length);
[[nodiscard]] Reduction recursive_doubling(Rank ranks, std::int64_t length);
[[nodiscard]] Reduction halving_doubling(Rank ranks, std::int64_t length);
[[nodiscard]] Reduction binary_tree(Rank ranks, std::int64_t length);
[[nodiscard]] Reduction double_binary_tree(Rank ranks, std::int64_t length);

/// Adds a transfer to a phase unless it is empty.
void put(TransferPhase& phase, const Transfer& transfer);

/// The transfers of a phase in the opposite direction, as copies.
[[nodiscard]] TransferPhase mirror_of(const TransferPhase& phase);

/// Phases that reduce the elements [begin, end) of all ranks up a tree. parent[r] is r's parent, -1
/// at the root. A rank receives from at most one child in a phase.
[[nodiscard]] std::vector<TransferPhase> up_a_tree(const std::vector<Rank>& parent,
                                                   std::int64_t begin, std::int64_t end);

}  // namespace rubato::algorithms
