#include <bit>
#include <utility>

#include "algorithms.hpp"

namespace rubato::algorithms {

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

}  // namespace rubato::algorithms
