#include "algorithms.hpp"

namespace rubato::algorithms {

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

}  // namespace rubato::algorithms
