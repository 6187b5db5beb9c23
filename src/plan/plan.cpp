#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rubato/core/check.hpp>
#include <rubato/core/error.hpp>
#include <rubato/plan/plan.hpp>

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
  if (asked.batch_size < 1 || asked.batch_size > kMaxBatchSize) {
    return fmt::format("batch size {}; accepted: a whole number from 1 to {}", asked.batch_size,
                       kMaxBatchSize);
  }
  if (asked.cores && (*asked.cores < 1 || *asked.cores > kMaxCores)) {
    return fmt::format("cores {}; accepted: a whole number from 1 to {}", *asked.cores, kMaxCores);
  }
  if (asked.batch_size % minibatch != 0) {
    return fmt::format(
        "batch size {} is no multiple of the minibatch size {}; accepted: a multiple, such as {}",
        asked.batch_size, minibatch, nearest_multiples(asked.batch_size, minibatch));
  }
  if (asked.batch_size > samples_per_epoch()) {
    return fmt::format(
        "batch size {} is larger than an epoch ({} minibatches of {} samples); accepted: at most "
        "{}",
        asked.batch_size, minibatches_per_epoch(), minibatch, samples_per_epoch());
  }
  return {};
}

std::optional<StepPlan> StepPlanner::plan(const StepPlace& place, const TraceStep& asked) const {
  if (place.samples + asked.batch_size > samples_per_epoch()) return std::nullopt;
  return StepPlan{.index = place.step,
                  .batch_size = asked.batch_size,
                  .cores = asked.cores.value_or(options_.cores),
                  .first_minibatch = MinibatchIndex{place.samples / options_.minibatch_size},
                  .minibatches = asked.batch_size / options_.minibatch_size};
}

EpochStart start_of(const EpochPlan& epoch) {
  EpochStart start{.index = epoch.index,
                   .first_step = epoch.first_step(),
                   .samples = 0,
                   .steps = static_cast<std::int64_t>(epoch.steps.size())};
  for (const StepPlan& step : epoch.steps) start.samples += step.batch_size;
  return start;
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
  StepPlace place{.step = next_step_, .epoch = next_epoch_};
  while (!epoch.complete) {
    const std::optional<TraceStep> row = trace_.at(place.step);
    if (!row) break;
    const std::optional<StepPlan> step = steps_.plan(place, *row);
    if (step) {
      epoch.steps.push_back(*step);
      place = StepPlanner::after(place, *step);
    }
    // Without a sample left nothing could follow, whatever the trace would say.
    epoch.complete = !step || place.samples == steps_.samples_per_epoch();
  }
  if (epoch.steps.empty() || (!epoch.complete && trace_.end() == TraceEnd::error)) {
    return std::nullopt;
  }
  next_step_ = place.step;
  ++next_epoch_;
  return epoch;
}

void Planner::go_to(EpochIndex epoch, StepIndex step) {
  RUBATO_CHECK(epoch.value() >= 0 && step.value() >= 0, "epochs and steps count from 0");
  next_epoch_ = epoch;
  next_step_ = step;
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
  StepIndex end;
  while (const std::optional<EpochPlan> epoch = rows_only.next()) {
    ++extent.epochs;
    end = epoch->end_step();
  }
  for (std::size_t row = end.offset(); row < rows.size(); ++row) {
    ++extent.further_steps;
    extent.further_samples += rows[row].batch_size;
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
