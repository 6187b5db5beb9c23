#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/plan/plan.hpp>

#include "core/check.hpp"

namespace rubato {

namespace {

void check_options(const PlanOptions& options) {
  if (options.minibatch_size < 1 || options.minibatch_size > kMaxBatchSize) {
    throw Error(fmt::format("minibatches of {} samples; accepted: 1 to {}", options.minibatch_size,
                            kMaxBatchSize));
  }
  if (options.cores < 1 || options.cores > kMaxCores) {
    throw Error(fmt::format("{} cores; accepted: 1 to {}", options.cores, kMaxCores));
  }
  if (options.dataset_size < 1) {
    throw Error(fmt::format("the data set is empty; accepted: at least one minibatch ({} samples)",
                            options.minibatch_size));
  }
  if (options.dataset_size < options.minibatch_size) {
    throw Error(
        fmt::format("the data set holds {} samples, less than one minibatch of {}; accepted: "
                    "a minibatch of at most {}",
                    options.dataset_size, options.minibatch_size, options.dataset_size));
  }
  if (options.dataset_size > kMaxDatasetSize) {
    throw Error(fmt::format("a data set of {} samples; accepted: at most {}", options.dataset_size,
                            kMaxDatasetSize));
  }
}

std::string nearest_multiples(std::int64_t value, std::int64_t factor) {
  const std::int64_t below = value / factor * factor;
  return below == 0 ? fmt::format("{}", factor) : fmt::format("{} or {}", below, below + factor);
}

std::string count_of(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
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
        "batch size {} is no multiple of the minibatch size {}; accepted: a multiple, such as {}",
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
  // Of more epochs the samples might be too many for 64 bits.
  const std::int64_t within_reach = kMaxBatchSize / samples_per_epoch() + 2;
  if (!carries() || epochs_left < 1 || epochs_left > within_reach) return std::nullopt;
  return epochs_left * samples_per_epoch() - place.samples;
}

StepPlace StepPlanner::after(StepPlace place, const StepPlan& step) const {
  ++place.step;
  place.samples += step.batch_size;
  if (carries()) {
    place.epoch = EpochIndex{place.epoch.value() + place.samples / samples_per_epoch()};
    place.samples %= samples_per_epoch();
  }
  return place;
}

std::int64_t samples_of(const EpochPlan& epoch, const PlanOptions& options) {
  if (options.remainder == Remainder::carry) {
    if (epoch.complete || epoch.steps.empty()) return epoch.complete ? options.dataset_size : 0;
    const StepPlan& last = epoch.steps.back();
    return last.first_sample(options.minibatch_size) + last.batch_size;
  }
  std::int64_t samples = 0;
  for (const StepPlan& step : epoch.steps) samples += step.batch_size;
  return samples;
}

EpochStart start_of(const EpochPlan& epoch, const PlanOptions& options) {
  return {.index = epoch.index,
          .first_step = epoch.first_step(),
          .samples = samples_of(epoch, options),
          .steps = static_cast<std::int64_t>(epoch.steps.size())};
}

Planner::Planner(Trace trace, PlanOptions options) : trace_(std::move(trace)), steps_(options) {
  StepIndex step;
  for (const TraceStep& row : trace_.steps()) {
    const std::string objection = steps_.objection(row);
    if (!objection.empty()) throw Error(fmt::format("{}: {}", trace_.where(step), objection));
    ++step;
  }
}

std::optional<EpochPlan> Planner::next() {
  EpochPlan epoch{.index = next_epoch_, .steps = {}, .complete = false};
  StepPlace place = place_;
  // Without a sample left nothing could follow, whatever the trace would say.
  const auto is_full = [&] {
    return place.epoch > next_epoch_ || place.samples == steps_.samples_per_epoch();
  };
  while (!is_full()) {
    const std::optional<TraceStep> row = trace_.at(place.step);
    if (!row) break;
    const std::optional<StepPlan> step = steps_.plan(place, *row);
    epoch.complete = !step;
    if (!step) break;
    epoch.steps.push_back(*step);
    place = steps_.after(place, *step);
  }
  epoch.complete = epoch.complete || is_full();
  epoch.end = place.step;
  const bool nothing = epoch.steps.empty() && !epoch.complete;
  if (nothing || (!epoch.complete && trace_.end() == TraceEnd::error)) return std::nullopt;
  ++next_epoch_;
  // What is left of the epoch is left.
  if (place.epoch < next_epoch_) place = {.step = place.step, .epoch = next_epoch_};
  place_ = place;
  return epoch;
}

void Planner::go_to(EpochIndex epoch, StepIndex step, std::int64_t samples) {
  RUBATO_CHECK(epoch.value() >= 0 && step.value() >= 0 && samples >= 0,
               "epochs, steps and samples count from 0");
  next_epoch_ = epoch;
  place_ = {.step = step, .epoch = epoch, .samples = samples};
}

std::int64_t Planner::largest_step() const {
  const auto largest = std::max_element(
      trace_.steps().begin(), trace_.steps().end(),
      [](const TraceStep& a, const TraceStep& b) { return a.batch_size < b.batch_size; });
  return largest->batch_size / options().minibatch_size;
}

TraceExtent extent_of(const Planner& planner) {
  const std::vector<TraceStep>& rows = planner.trace().steps();
  Planner rows_only(Trace(rows, TraceEnd::error, planner.trace().source()), planner.options());
  TraceExtent extent;
  std::int64_t samples = 0;
  StepIndex end;
  while (const std::optional<EpochPlan> epoch = rows_only.next()) {
    ++extent.epochs;
    for (; end < epoch->end_step(); ++end) samples += rows[end.offset()].batch_size;
  }
  // What the last step of a complete epoch carries on is none of its samples.
  if (planner.options().remainder == Remainder::carry) {
    extent.further_samples = samples - extent.epochs * planner.options().dataset_size;
  }
  for (; end.value() < planner.trace().length(); ++end) {
    ++extent.further_steps;
    extent.further_samples += rows[end.offset()].batch_size;
  }
  return extent;
}

void require_epochs(const Planner& planner, std::int64_t epochs) {
  if (planner.trace().end() != TraceEnd::error) return;
  const TraceExtent extent = extent_of(planner);
  if (extent.epochs >= epochs) return;
  const std::string further =
      extent.further_steps == 0
          ? std::string{}
          : fmt::format(" and {}", count_of(extent.further_steps, "further step"));
  const std::string at_most =
      extent.epochs == 0 ? std::string{}
                         : fmt::format("at most {}, or ", count_of(extent.epochs, "epoch"));
  throw Error(
      fmt::format("{}: the trace ends after {}{}, but {} asked for; accepted: {}hold, cycle "
                  "or stop at the trace's end (--on-trace-end)",
                  planner.trace().where(StepIndex{planner.trace().length() - 1}),
                  count_of(extent.epochs, "epoch"), further,
                  epochs == 1 ? std::string("1 is") : fmt::format("{} are", epochs), at_most));
}

}  // namespace rubato
