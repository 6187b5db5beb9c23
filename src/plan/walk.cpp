#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/plan/walk.hpp>

#include "core/check.hpp"

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
  if (epoch_samples_ >= planner_.samples_per_epoch()) return nullptr;
  const std::optional<NextStep>& step = ahead().step;
  return step ? &*step : nullptr;
}

bool Walk::epoch_is_full() {
  return epoch_samples_ >= planner_.samples_per_epoch() || (!ahead().ended && !ahead().step);
}

bool Walk::has_ended() {
  return epoch_samples_ < planner_.samples_per_epoch() && ahead().ended;
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
  if (!objection.empty()) throw Error(fmt::format("{}: {}", source_->where(step_), objection));
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
          .noise_scale = noise_scale_};
}

std::int64_t Walk::max_minibatches() const {
  const std::int64_t of_source =
      std::max<std::int64_t>(1, max_batch_ / planner_.options().minibatch_size);
  return planner_.carries() ? of_source : std::min(of_source, planner_.minibatches_per_epoch());
}

void Walk::save(State& state, bool in_epoch) const {
  state.put(kEpochs, epoch_.value());
  state.put(kSteps, step_.value());
  state.put(kSamples, samples_);
  state.put(kIterations, iterations_);
  if (time_) state.put(kClock, time_->state());
  state.put(kBatch, last_batch_);
  // All of a trace is known from the place.
  if (source_->trace() == nullptr && last_gain_) state.put(kGain, *last_gain_);
  state.put(kFirstStep, first_step_.value());
  if (in_epoch) {
    state.put(kEpochSteps, epoch_steps());
    state.put(kEpochSamples, epoch_samples());
    state.put(kSamplesBefore, samples_before_);
  }
  if (planner_.carries()) {
    state.put(kCarried, epoch_samples_ - (in_epoch ? epoch_samples() : 0));
  }
  State of_source;
  source_->save(of_source, step_.value());
  state.put(kSource, std::move(of_source));
}

bool Walk::load(const State& state, std::optional<double> noise_scale) {
  epoch_ = EpochIndex{state.count(kEpochs)};
  step_ = StepIndex{state.count(kSteps)};
  samples_ = state.count(kSamples);
  iterations_ = state.value<double>(kIterations);
  if (state.has(kClock)) time_ = ClockTime::of_state(state.values<double>(kClock));
  last_batch_ = state.count(kBatch);
  noise_scale_ = noise_scale;
  const std::int64_t samples = planner_.samples_per_epoch();
  // No more than the epochs can have, and the one begun, so that nothing goes on for ever.
  if ((step_.value() - 1) / minibatches_of(samples, planner_.options().minibatch_size) >
      epoch_.value()) {
    throw Error(
        fmt::format("the state is damaged: {} steps in {} epochs", step_.value(), epoch_.value()));
  }
  source_->load(state.part(kSource), step_.value());
  if (source_->trace() == nullptr && step_.value() > 0) last_gain_ = state.value<double>(kGain);

  first_step_ = StepIndex{state.count(kFirstStep)};
  const bool in_epoch = state.has(kEpochSteps);
  const std::int64_t of_epoch = in_epoch ? state.count(kEpochSamples) : 0;
  const std::int64_t carried = planner_.carries() ? state.count(kCarried) : 0;
  // One that goes on in the next epoch has taken all of this one.
  const bool fits =
      of_epoch <= samples && carried <= kMaxBatchSize && (carried == 0 || of_epoch % samples == 0);
  if (!fits) {
    throw Error(fmt::format("the state is damaged: {} samples of an epoch and {} of the next",
                            of_epoch, carried));
  }
  const std::int64_t done = in_epoch ? state.count(kEpochSteps) : 0;
  if (done > step_.value() || first_step_.value() != step_.value() - done) {
    throw Error(fmt::format("the state is damaged: {} steps from step {} on are not {} steps", done,
                            first_step_.value() + 1, step_.value()));
  }
  epoch_samples_ = of_epoch + carried;
  samples_before_ = in_epoch ? state.count(kSamplesBefore) : epoch_samples();
  ahead_.reset();
  return in_epoch;
}

}  // namespace rubato
