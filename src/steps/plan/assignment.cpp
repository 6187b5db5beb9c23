#include <algorithm>

#include <rubato/steps/step_plan.hpp>

#include "base/core/check.hpp"

namespace rubato {

namespace {

MinibatchRun contiguous_share(MinibatchIndex first, std::int64_t minibatches, CoreRank core,
                              std::int64_t cores) {
  const std::int64_t shorter = minibatches / cores;
  const std::int64_t longer_runs = minibatches % cores;
  const std::int64_t longer_before = std::min(core.value(), longer_runs);
  return {.first = MinibatchIndex{first.value() + core.value() * shorter + longer_before},
          .count = shorter + (core.value() < longer_runs ? 1 : 0),
          .stride = 1};
}

MinibatchRun strided_share(MinibatchIndex first, std::int64_t minibatches, CoreRank core,
                           std::int64_t cores) {
  const std::int64_t rounds = (minibatches + cores - 1 - core.value()) / cores;
  return {.first = MinibatchIndex{first.value() + core.value()}, .count = rounds, .stride = cores};
}

}  // namespace

MinibatchRun share_of_core(MinibatchIndex first, std::int64_t minibatches, CoreRank core,
                           std::int64_t cores, Assignment assignment) {
  RUBATO_CHECK(minibatches >= 1, "a step has at least one minibatch");
  RUBATO_CHECK(core.value() >= 0 && core.value() < cores, "the core is one of the step's");
  return assignment == Assignment::contiguous ? contiguous_share(first, minibatches, core, cores)
                                              : strided_share(first, minibatches, core, cores);
}

std::int64_t busy_cores(std::int64_t minibatches, std::int64_t cores) {
  RUBATO_CHECK(minibatches >= 1 && cores >= 1, "a step has minibatches and cores");
  return std::min(minibatches, cores);
}

}  // namespace rubato
