// A Walk is a position: the epoch, the step, and the samples taken since the epoch began, which may
// exceed the epoch with Remainder::carry. The source's answer for a position is cached in ahead_
// and dropped whenever the position changes, in take(), end_epoch(), go_to() and when a state is
// loaded. StepPlanner checks and shortens the step that the source asks for; a step for which the
// epoch has no room leaves Ahead::step empty, which differs from a source that has ended. take()
// reports the step as it was planned to the source, together with the progress after it.

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rubato/steps/walk.hpp>

#include "base/core/check.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

constexpr std::string_view kSource = "source";
constexpr std::string_view kEpochs = "epochs";
constexpr std::string_view kSteps = "steps";
constexpr std::string_view kSamples = "samples";
constexpr std::string_view kIterations = "iterations";
constexpr std::string_view kClock = "clock";
constexpr std::string_view kBatch = "batch_of_last_step";
constexpr std::string_view kGain = "gain_of_last_step";
constexpr std::string_view kFirstStep = "epoch.first_step";
constexpr std::string_view kEpochSteps = "epoch.steps";
constexpr std::string_view kEpochSamples = "epoch.samples";
constexpr std::string_view kSamplesBefore = "epoch.samples_before";
constexpr std::string_view kCarried = "carried.samples";

}  // namespace

Walk::Walk(StepSource& source, const PlanOptions& options, const Budget& budget)
    : source_(&source), planner_(options), budget_(budget), max_batch_(source.max_batch()) {}

const NextStep* Walk::next() {
  if (has_all_samples()) return nullptr;
  const std::optional<NextStep>& step = ahead().step;
  return step ? &*step : nullptr;
}

bool Walk::epoch_is_full() {
  return has_all_samples() || (!ahead().ended && !ahead().step);
}

bool Walk::has_ended() {
  return !has_all_samples() && ahead().ended;
}

const Walk::Ahead& Walk::ahead() {
  if (ahead_) return *ahead_;
  const SourceProgress progress = this->progress();
  std::optional<TraceStep> asked = source_->next(progress);
  if (!asked) return ahead_.emplace(Ahead{.ended = true});
  std::string objection = planner_.objection(*asked);
  if (objection.empty() && asked->batch_size > max_batch_) {
    objection = fmt::format(
        "batch size {} is above the largest that the source has announced; accepted: at most {}",
        asked->batch_size, max_batch_);
  }
  if (!objection.empty()) throw_error("{}: {}", source_->where(step_), objection);
  Ahead ahead{.asked = *std::move(asked)};
  if (std::optional<StepPlan> plan = planner_.plan(place(), ahead.asked)) {
    ahead.step = {.epoch = epoch_,
                  .plan = *std::move(plan),
                  .time = source_->time_after(progress),
                  .decision_inputs = source_->decision_inputs(progress)};
  }
  return ahead_.emplace(std::move(ahead));
}

std::string Walk::reached_with(double gain) {
  const NextStep* const step = next();
  RUBATO_CHECK(step != nullptr, "there is a next step");
  return reached(budget_, {.iterations = iterations_ + gain,
                           .samples = samples_ + step->plan.batch_size,
                           .time = step->time});
}

void Walk::take(std::optional<double> gain, std::optional<double> noise_scale) {
  const NextStep* const taken = next();
  RUBATO_CHECK(taken != nullptr, "there is a next step");
  TraceStep step = ahead_->asked;
  step.batch_size = taken->plan.batch_size;
  time_ = taken->time;
  ahead_.reset();
  ++step_;
  epoch_samples_ += step.batch_size;
  samples_ += step.batch_size;
  iterations_ += gain.value_or(0);
  last_batch_ = step.batch_size;
  last_gain_ = gain;
  noise_scale_ = noise_scale;
  source_->taken(step, progress());
}

void Walk::end_epoch(bool whole) {
  const std::int64_t samples = planner_.samples_per_epoch();
  if (whole) ++epoch_;
  first_step_ = step_;
  epoch_samples_ = std::max<std::int64_t>(0, epoch_samples_ - samples);
  samples_before_ = epoch_samples();
  ahead_.reset();
}

void Walk::go_to(const StepPlace& place) {
  epoch_ = place.epoch;
  step_ = first_step_ = place.step;
  epoch_samples_ = place.samples;
  samples_before_ = epoch_samples();
  ahead_.reset();
}

std::optional<EpochPart> Walk::part(std::optional<std::int64_t> whole_steps) {
  if (epoch_is_full()) return std::nullopt;
  const std::int64_t left = planner_.samples_per_epoch() - epoch_samples_;
  const std::int64_t more = last_batch_ > 0 ? left / last_batch_ : 0;
  return EpochPart{.steps = epoch_steps(),
                   .samples = epoch_samples_,
                   .of_steps = whole_steps.value_or(epoch_steps() + more)};
}

StepPlace Walk::place() const {
  const std::int64_t beyond =
      planner_.carries() ? epoch_samples_ / planner_.samples_per_epoch() : 0;
  return {.step = step_,
          .epoch = EpochIndex{epoch_.value() + beyond},
          .samples = epoch_samples_ - beyond * planner_.samples_per_epoch()};
}

std::int64_t Walk::all_samples() const {
  // Epochs without end are those of a budget.
  const double of_epochs = static_cast<double>(planner_.options().epochs) *
                           static_cast<double>(planner_.samples_per_epoch());
  constexpr double kMost = 4e18;
  return std::min(static_cast<std::int64_t>(std::min(of_epochs, kMost)),
                  budget_.samples.value_or(std::numeric_limits<std::int64_t>::max()));
}

SourceProgress Walk::progress() const {
  const StepPlace next = place();
  return {.step = next.step,
          .epoch = next.epoch,
          .samples = samples_,
          .iterations = iterations_,
          .gain = last_gain_,
          .time = time_,
          .budget = budget_,
          .samples_left = planner_.samples_left(next),
          .all_samples = all_samples(),
          .noise_scale = noise_scale_};
}

std::int64_t Walk::max_minibatches() const {
  const std::int64_t of_source =
      std::max<std::int64_t>(1, max_batch_ / planner_.options().minibatch_size);
  return planner_.carries() ? of_source : std::min(of_source, planner_.minibatches_per_epoch());
}

void Walk::visit_state(StateVisitor& state, bool& in_epoch, std::optional<double> noise_scale) {
  state.count(kEpochs, epoch_);
  state.count(kSteps, step_);
  state.count(kSamples, samples_);
  state.value(kIterations, iterations_);
  if (state.has(kClock, time_.has_value())) {
    if (!time_) time_.emplace();
    state.numbers(kClock, *time_, "the clock");
  }
  state.count(kBatch, last_batch_);
  // The state of a trace follows from the place alone.
  if (source_->trace() == nullptr) {
    state.optional(kGain, last_gain_);
    state.require(last_gain_.has_value() || step_.value() == 0 || state.forks(),
                  "its last step has no gain");
  }
  visit_place(state, in_epoch);
  StateVisitor of_source = state.part(kSource);
  source_->visit_state(of_source, step_.value());
  if (!state.loading()) return;
  noise_scale_ = noise_scale;
  ahead_.reset();
}

void Walk::visit_place(StateVisitor& state, bool& in_epoch) {
  state.count(kFirstStep, first_step_);
  in_epoch = state.has(kEpochSteps, in_epoch);
  std::int64_t steps = in_epoch ? epoch_steps() : 0;
  std::int64_t samples = in_epoch ? epoch_samples() : 0;
  std::int64_t carried = planner_.carries() ? epoch_samples_ - samples : 0;
  if (in_epoch) {
    state.count(kEpochSteps, steps);
    state.count(kEpochSamples, samples);
    state.count(kSamplesBefore, samples_before_);
  }
  if (planner_.carries()) state.count(kCarried, carried);
  if (!state.loading()) return;

  // The number of steps is limited by the epochs, so that a damaged state cannot make training
  // endless.
  const std::int64_t of_epoch = planner_.samples_per_epoch();
  state.require((step_.value() - 1) / minibatches_of(of_epoch, planner_.options().minibatch_size) <=
                    epoch_.value(),
                fmt::format("{} steps in {} epochs", step_.value(), epoch_.value()));
  // A step that extends into the next epoch has taken all of this one.
  state.require(
      samples <= of_epoch && carried <= kMaxBatchSize && (carried == 0 || samples % of_epoch == 0),
      fmt::format("{} samples of an epoch and {} of the next", samples, carried));
  state.require(steps <= step_.value() && first_step_.value() == step_.value() - steps,
                fmt::format("{} steps from step {} on are not {} steps", steps,
                            first_step_.value() + 1, step_.value()));
  epoch_samples_ = samples + carried;
  if (!in_epoch) samples_before_ = this->epoch_samples();
}

}  // namespace rubato
