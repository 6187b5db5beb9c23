#include "algorithms.hpp"

namespace rubato::algorithms {

Reduction sequential(Rank ranks, std::int64_t length) {
  Reduction reduction;
  for (Rank rank = 1; rank < ranks; ++rank) {
    put(reduction.phases.emplace_back(), {.from = rank, .to = 0, .begin = 0, .end = length});
  }
  return reduction;
}

}  // namespace rubato::algorithms
