#include <bit>
#include <utility>

#include "schedule.hpp"

namespace rubato::algorithms {

Reduction sequential(Rank ranks, std::int64_t length) {
  Reduction reduction;
  for (Rank rank = 1; rank < ranks; ++rank) {
    put(reduction.phases.emplace_back(), {.from = rank, .to = 0, .begin = 0, .end = length});
  }
  return reduction;
}

// Chunk c travels from rank c once around the ring, and every rank on its way adds its own part.
Reduction ring(Rank ranks, std::int64_t length) {
  const auto bound = [&](Rank chunk) { return length * chunk / ranks; };
  Reduction reduction;
  for (Rank step = 0; step + 1 < ranks; ++step) {
    TransferPhase& phase = reduction.phases.emplace_back();
    for (Rank rank = 0; rank < ranks; ++rank) {
      const Rank chunk = (rank - step + ranks) % ranks;
      put(phase,
          {.from = rank, .to = (rank + 1) % ranks, .begin = bound(chunk), .end = bound(chunk + 1)});
    }
  }
  return reduction;
}

Reduction recursive_doubling(Rank ranks, std::int64_t length) {
  const auto power = static_cast<Rank>(std::bit_floor(static_cast<std::uint32_t>(ranks)));
  TransferPhase fold;
  for (Rank rank = power; rank < ranks; ++rank) {
    put(fold, {.from = rank, .to = rank - power, .begin = 0, .end = length});
  }
  Reduction reduction{.phases = {}, .mirrored = false};
  if (power < ranks) reduction.phases.push_back(fold);
  for (Rank distance = 1; distance < power; distance *= 2) {
    TransferPhase& phase = reduction.phases.emplace_back();
    for (Rank rank = 0; rank < power; ++rank) {
      put(phase, {.from = rank, .to = rank ^ distance, .begin = 0, .end = length});
    }
  }
  if (power < ranks) reduction.phases.push_back(mirror_of(fold));
  return reduction;
}

// At each distance, a rank and its partner exchange halves of their common range and keep one each,
// so that each of 2^k ranks ends with a 2^k-th of the array.
Reduction halving_doubling(Rank ranks, std::int64_t length) {
  const auto power = static_cast<Rank>(std::bit_floor(static_cast<std::uint32_t>(ranks)));
  Reduction reduction;
  if (power < ranks) {
    TransferPhase& fold = reduction.phases.emplace_back();
    for (Rank rank = power; rank < ranks; ++rank) {
      put(fold, {.from = rank, .to = rank - power, .begin = 0, .end = length});
    }
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> kept(static_cast<std::size_t>(power),
                                                          {0, length});
  for (Rank distance = power / 2; distance >= 1; distance /= 2) {
    TransferPhase& phase = reduction.phases.emplace_back();
    for (Rank rank = 0; rank < power; ++rank) {
      auto& [begin, end] = kept[static_cast<std::size_t>(rank)];
      const std::int64_t middle = begin + (end - begin) / 2;
      const bool keeps_lower = (rank & distance) == 0;
      put(phase, {.from = rank,
                  .to = rank ^ distance,
                  .begin = keeps_lower ? middle : begin,
                  .end = keeps_lower ? end : middle});
      (keeps_lower ? end : begin) = middle;
    }
  }
  return reduction;
}

namespace {

// The binary search tree over the positions 1 .. n in which positions with more factors of two are
// nearer to the root; odd positions are leaves. The root's parent is -1.
std::vector<Rank> search_tree(Rank n) {
  std::vector<Rank> parent(static_cast<std::size_t>(n) + 1, -1);
  for (Rank position = 1; position <= n; ++position) {
    const Rank bit = position & -position;
    // The subtree of a position is position - bit + 1 .. position + bit - 1, as far as n; the
    // parent is next to it, on the side with fewer factors of two, unless that is beyond n.
    const Rank nearer = (position & ~bit) | (2 * bit);
    const Rank farther = position - bit;
    Rank up = nearer <= n ? nearer : farther;
    parent[static_cast<std::size_t>(position)] = up >= 1 ? up : -1;
  }
  return parent;
}

// The search tree over ranks, with rank r at position_of(r).
template <class Position>
std::vector<Rank> tree_over_ranks(Rank ranks, Position position_of) {
  const std::vector<Rank> by_position = search_tree(ranks);
  std::vector<Rank> rank_at(static_cast<std::size_t>(ranks) + 1);
  for (Rank rank = 0; rank < ranks; ++rank) {
    rank_at[static_cast<std::size_t>(position_of(rank))] = rank;
  }
  std::vector<Rank> parent;
  parent.reserve(static_cast<std::size_t>(ranks));
  for (Rank rank = 0; rank < ranks; ++rank) {
    const Rank up = by_position[static_cast<std::size_t>(position_of(rank))];
    parent.push_back(up < 0 ? -1 : rank_at[static_cast<std::size_t>(up)]);
  }
  return parent;
}

}  // namespace

Reduction binary_tree(Rank ranks, std::int64_t length) {
  std::vector<Rank> parent;
  parent.reserve(static_cast<std::size_t>(ranks));
  for (Rank rank = 0; rank < ranks; ++rank) parent.push_back(rank == 0 ? -1 : (rank - 1) / 2);
  return {.phases = up_a_tree(parent, 0, length)};
}

// Ranks 0, 2, 4, ... are leaves (odd positions) in the first tree and inner nodes (even ones) in
// the second. The second is the mirror image for an even number of ranks, else it is shifted by
// one, and only the last rank is a leaf in both.
Reduction double_binary_tree(Rank ranks, std::int64_t length) {
  const auto first = tree_over_ranks(ranks, [](Rank rank) { return rank + 1; });
  const auto second = tree_over_ranks(
      ranks, [ranks](Rank rank) { return ranks % 2 == 0 ? ranks - rank : (rank + 1) % ranks + 1; });
  Reduction reduction{.phases = up_a_tree(first, 0, length / 2)};
  const std::vector<TransferPhase> other = up_a_tree(second, length / 2, length);
  if (reduction.phases.size() < other.size()) reduction.phases.resize(other.size());
  for (std::size_t i = 0; i < other.size(); ++i) {
    reduction.phases[i].insert(reduction.phases[i].end(), other[i].begin(), other[i].end());
  }
  return reduction;
}

}  // namespace rubato::algorithms
