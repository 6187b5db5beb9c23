#include <bit>

#include "algorithms.hpp"

namespace rubato::algorithms {

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

}  // namespace rubato::algorithms
