// TimedSource adds a clock to a source whose devices stay: the seconds of a step follow from its
// minibatches and cores alone, so the time after the next step needs no simulation. ClockedSource,
// whose devices come and go, is in clocked_source.cpp. simulate() drives a Walk over a source as a
// trainer does, without gains and noise scales. After a budget has been reached it still ends the
// epochs that are full, so that the result counts them.

#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/steps/modelled_time.hpp>

#include "base/core/throw_error.hpp"
#include "clock.hpp"
#include "steps/plan/batch_decision.hpp"

namespace rubato {

namespace {

std::unique_ptr<StepSource> without_clock(std::unique_ptr<StepSource> source) {
  if (source == nullptr) throw Error("the clock has no steps; accepted: any source but null");
  if (source->has_clock()) {
    throw Error("the source of the steps has a clock already; accepted: one clock");
  }
  return source;
}

}  // namespace

TimedSource::TimedSource(std::unique_ptr<StepSource> source, Options options,
                         std::unique_ptr<BatchPolicy> batch)
    : source_(without_clock(std::move(source))),
      options_(std::move(options)),
      batch_(std::move(batch)),
      times_(options_.cluster) {
  if (options_.minibatch_size >= 1 && options_.cores >= 1) return;
  throw_error("the clock has minibatches of {} samples and {} cores; accepted: at least 1 of each",
              options_.minibatch_size, options_.cores);
}

std::optional<BatchDecision> TimedSource::decide(const SourceProgress& progress) const {
  std::optional<TraceStep> offered =
      batch_ == nullptr ? source_->next(progress) : checked_offer(*source_, progress);
  if (!offered) return std::nullopt;
  if (batch_ == nullptr) return BatchDecision{.step = *offered};
  offered->cores = offered->cores.value_or(options_.cores);
  return checked_decision(*batch_, *offered, progress, where(progress.step));
}

std::optional<TraceStep> TimedSource::next(const SourceProgress& progress) const {
  const std::optional<BatchDecision> decision = decide(progress);
  if (!decision) return std::nullopt;
  return decision->step;
}

std::vector<NamedNumber> TimedSource::decision_inputs(const SourceProgress& progress) const {
  if (batch_ == nullptr) return {};
  std::optional<BatchDecision> decision = decide(progress);
  if (!decision) return {};
  return std::move(decision->inputs);
}

std::int64_t TimedSource::max_batch() const {
  const std::int64_t offered = source_->max_batch();
  return batch_ == nullptr ? offered : batch_->max_batch(offered);
}

bool TimedSource::needs_noise_scale() const {
  return source_->needs_noise_scale() || (batch_ != nullptr && batch_->needs_noise_scale());
}

ClockTime TimedSource::after(const TraceStep& step) const {
  const std::int64_t cores = step.cores.value_or(options_.cores);
  ClockTime time = time_;
  const double seconds = seconds_of_step(times_, minibatches(step), cores, step.host_cores, steps_);
  spend(time, seconds, cores, options_.cluster);
  time.checkpoint_seconds +=
      seconds - times_.step_seconds(minibatches(step), cores, step.host_cores);
  return time;
}

std::optional<ClockTime> TimedSource::time_after(const SourceProgress& progress) const {
  const std::optional<TraceStep> step = next(progress);
  if (!step) return std::nullopt;
  return after(shortened(*step, progress));
}

void TimedSource::taken(const TraceStep& step, const SourceProgress& progress) {
  time_ = after(step);
  ++steps_;
  source_->taken(step, progress);
  if (batch_ == nullptr) return;
  batch_->observe({.step = step,
                   .after = progress,
                   .seconds = times_.step_seconds(
                       minibatches(step), step.cores.value_or(options_.cores), step.host_cores)});
}

std::string TimedSource::binding() const {
  return fmt::format("minibatch {} cores {} {}", options_.minibatch_size, options_.cores,
                     text_of(options_.cluster));
}

void TimedSource::visit_state(StateVisitor& state, std::int64_t steps) {
  source_->visit_state(state, steps);
  visit_clock(state, binding(), time_);
  visit_policy(state, batch_.get());
  if (state.loading()) steps_ = steps;
}

namespace {

void require_known(const Budget& budget, const StepSource& source) {
  require_valid(budget);
  if (budget.iterations) {
    throw Error(
        "a budget of iterations: only training knows them; accepted: samples, hours, money");
  }
  if (budget.needs_clock() && !source.has_clock()) {
    throw_error(
        "a budget of {} needs modelled time; accepted: with a source of the steps that has a clock",
        to_text(budget));
  }
}

}  // namespace

SimulationResult simulate(StepSource& source, const PlanOptions& options,
                          const std::function<void(const SimulatedStep& step)>& on_step,
                          const Budget& budget) {
  require_known(budget, source);
  if (options.epochs < 1) throw_error("{} epochs: at least 1 is needed", options.epochs);
  Walk walk(source, options, budget);
  SimulationResult result;
  while (walk.epoch().value() < options.epochs && result.reached.empty()) {
    if (const NextStep* const next = walk.next()) {
      const NextStep step = *next;
      result.reached = walk.reached_with(0);
      walk.take();
      if (on_step) on_step(step);
    } else if (!walk.has_ended()) {
      walk.end_epoch();
    } else {
      const SourceEnd end = walk.end();
      result.ended = end.cause;
      result.time = end.time;
      if (end.cause == SourceEnd::Cause::budget)
        result.reached = reached(budget, {.time = end.time});
      break;
    }
  }
  if (!result.reached.empty()) {
    while (walk.epoch_is_full()) walk.end_epoch();
  }
  result.epochs = walk.epoch().value();
  result.steps = walk.step().value();
  result.samples = walk.samples();
  if (!result.time) result.time = walk.time();
  return result;
}

}  // namespace rubato
