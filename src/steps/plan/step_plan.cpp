#include <algorithm>

#include <fmt/format.h>

#include <rubato/steps/random.hpp>
#include <rubato/steps/step_plan.hpp>

#include "base/core/check.hpp"
#include "base/core/throw_error.hpp"

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

MinibatchPlace StepPlan::place_of(MinibatchIndex minibatch, Assignment assignment) const {
  const std::int64_t before = minibatch.value() - first_minibatch.value();
  if (assignment == Assignment::strided) return {CoreRank{before % cores}, before / cores};
  const std::int64_t shorter = minibatches / cores;
  const std::int64_t longer_runs = minibatches % cores;
  const std::int64_t in_longer = longer_runs * (shorter + 1);
  if (before < in_longer) return {CoreRank{before / (shorter + 1)}, before % (shorter + 1)};
  const std::int64_t after = before - in_longer;
  return {CoreRank{longer_runs + after / shorter}, after % shorter};
}

namespace {

void check_options(const PlanOptions& options) {
  if (options.minibatch_size < 1 || options.minibatch_size > kMaxBatchSize) {
    throw_error("minibatches of {} samples; accepted: 1 to {}", options.minibatch_size,
                kMaxBatchSize);
  }
  if (options.cores < 1 || options.cores > kMaxCores) {
    throw_error("{} cores; accepted: 1 to {}", options.cores, kMaxCores);
  }
  if (options.dataset_size < 1) {
    throw_error("the data set is empty; accepted: at least one minibatch ({} samples)",
                options.minibatch_size);
  }
  if (options.dataset_size < options.minibatch_size) {
    throw_error(
        "the data set holds {} samples, less than one minibatch of {}; accepted: a minibatch of at "
        "most {}",
        options.dataset_size, options.minibatch_size, options.dataset_size);
  }
  if (options.dataset_size > kMaxDatasetSize) {
    throw_error("a data set of {} samples; accepted: at most {}", options.dataset_size,
                kMaxDatasetSize);
  }
}

std::string nearest_multiples(std::int64_t value, std::int64_t factor) {
  const std::int64_t below = value / factor * factor;
  return below == 0 ? fmt::format("{}", factor) : fmt::format("{} or {}", below, below + factor);
}

}  // namespace

StepPlanner::StepPlanner(const PlanOptions& options) : options_(options) {
  check_options(options_);
}

std::string StepPlanner::objection(const TraceStep& asked) const {
  const std::int64_t minibatch = options_.minibatch_size;
  if (std::string objection = objection_to(asked); !objection.empty()) return objection;
  if (asked.batch_size % minibatch != 0) {
    return fmt::format(
        "batch size {} is not a multiple of the minibatch size {}; accepted: a multiple, such as "
        "{}",
        asked.batch_size, minibatch, nearest_multiples(asked.batch_size, minibatch));
  }
  if (!carries() && asked.batch_size > samples_per_epoch()) {
    return fmt::format(
        "batch size {} is larger than an epoch ({} minibatches of {} samples); accepted: at most "
        "{}, or more with --remainder carry",
        asked.batch_size, minibatches_per_epoch(), minibatch, samples_per_epoch());
  }
  return {};
}

std::optional<StepPlan> StepPlanner::plan(const StepPlace& place, const TraceStep& asked) const {
  if (!carries() && place.samples + asked.batch_size > samples_per_epoch()) return std::nullopt;
  const std::int64_t minibatch = options_.minibatch_size;
  const std::int64_t batch_size =
      std::min(asked.batch_size, samples_left(place).value_or(asked.batch_size));
  return StepPlan{.index = place.step,
                  .batch_size = batch_size,
                  .cores = asked.cores.value_or(options_.cores),
                  .host_cores = asked.host_cores,
                  .first_minibatch = MinibatchIndex{place.samples / minibatch},
                  .minibatches = minibatches_of(batch_size, minibatch),
                  .shift = place.samples % minibatch};
}

std::optional<std::int64_t> StepPlanner::samples_left(const StepPlace& place) const {
  const std::int64_t epochs_left = options_.epochs - place.epoch.value();
  // The samples of more epochs might exceed 64 bits.
  const std::int64_t within_reach = kMaxBatchSize / samples_per_epoch() + 2;
  if (!carries() || epochs_left < 1 || epochs_left > within_reach) return std::nullopt;
  return epochs_left * samples_per_epoch() - place.samples;
}

}  // namespace rubato
