#include <utility>

#include <fmt/format.h>

#include <rubato/steps/plan.hpp>

#include "base/core/check.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

std::string count_of(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

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

Planner::Planner(Trace trace, PlanOptions options)
    : source_(std::make_shared<TraceSource>(std::move(trace))), walk_(*source_, options) {
  StepIndex step;
  for (const TraceStep& row : this->trace().steps()) {
    const std::string objection = walk_.planner().objection(row);
    if (!objection.empty()) throw_error("{}: {}", source_->where(step), objection);
    ++step;
  }
}

std::optional<EpochPlan> Planner::next() {
  EpochPlan epoch{.index = walk_.epoch(), .steps = {}};
  Walk walk = walk_;
  while (const NextStep* step = walk.next()) {
    epoch.steps.push_back(step->plan);
    walk.take();
  }
  epoch.complete = walk.epoch_is_full();
  epoch.end = walk.step();
  const bool nothing = epoch.steps.empty() && !epoch.complete;
  if (nothing || (!epoch.complete && trace().end() == TraceEnd::error)) return std::nullopt;
  walk.end_epoch();
  walk_ = std::move(walk);
  return epoch;
}

void Planner::go_to(EpochIndex epoch, StepIndex step, std::int64_t samples) {
  RUBATO_CHECK(epoch.value() >= 0 && step.value() >= 0 && samples >= 0,
               "epochs, steps and samples count from 0");
  walk_.go_to({.step = step, .epoch = epoch, .samples = samples});
}

TraceExtent extent_of(const Planner& planner) {
  const Trace& trace = planner.trace();
  TraceSource rows_only(Trace(trace.steps(), TraceEnd::error, trace.source()));
  Walk walk(rows_only, planner.options());
  while (!walk.has_ended()) {
    if (walk.epoch_is_full()) {
      walk.end_epoch();
    } else {
      walk.take();
    }
  }
  return {.epochs = walk.epoch().value(),
          .further_steps = walk.epoch_steps(),
          .further_samples = walk.epoch_samples()};
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
  throw_error(
      "{}: the trace ends after {}{}, but {} asked for; accepted: {}hold, cycle or stop at the "
      "trace's end (--on-trace-end)",
      planner.trace().where(StepIndex{planner.trace().length() - 1}),
      count_of(extent.epochs, "epoch"), further,
      epochs == 1 ? std::string("1 is") : fmt::format("{} are", epochs), at_most);
}

}  // namespace rubato
