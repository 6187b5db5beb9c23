#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/steps/modelled_time.hpp>
#include <rubato/steps/step_plan.hpp>

#include "base/core/throw_error.hpp"
#include "base/state/sha256.hpp"
#include "clock.hpp"
#include "steps/plan/batch_decision.hpp"

namespace rubato {

namespace {

constexpr std::string_view kDevices = "source.devices";
// Attempts at one step; if so many fail, none will ever succeed.
constexpr std::int64_t kMostAttempts = 100'000;
// No availability is defined beyond this time (Availability::at()).
constexpr double kLatestSecond = 3e9;

}  // namespace

ClockedSource::ClockedSource(Availability availability, StepOfDevices step_of, ClockOptions options,
                             std::unique_ptr<BatchPolicy> batch)
    : availability_(std::move(availability)),
      step_of_(std::move(step_of)),
      options_(std::move(options)),
      batch_(std::move(batch)),
      times_(options_.cluster) {
  if (!step_of_) throw Error("the clock has no policy; accepted: ClockOptions::step_of");
  if (options_.minibatch_size < 1 || options_.max_batch < options_.minibatch_size) {
    throw_error(
        "the clock has minibatches of {} samples and steps of at most {}; accepted: at least 1, "
        "and at least a minibatch",
        options_.minibatch_size, options_.max_batch);
  }
}

std::optional<TraceStep> ClockedSource::step_at(double seconds,
                                                const SourceProgress& progress) const {
  if (seconds > kLatestSecond) {
    throw_error("{}: the clock has reached {:.6g} s; accepted: up to {:.6g} s",
                where(progress.step), seconds, kLatestSecond);
  }
  const std::int64_t devices = availability_.at(seconds).value_or(0);
  std::optional<TraceStep> step = devices > 0 ? step_of_(devices, progress) : std::nullopt;
  if (!step) return std::nullopt;
  if (!step->cores) step->cores = devices;
  if (step->batch_size >= options_.minibatch_size && *step->cores >= 1) return step;
  throw_error(
      "{}: the policy makes a step of {} samples on {} cores of {} devices; accepted: a minibatch "
      "of {} at least, on one core at least",
      where(progress.step), step->batch_size, *step->cores, devices, options_.minibatch_size);
}

std::int64_t ClockedSource::cores_at(double seconds, const SourceProgress& progress) const {
  const std::optional<TraceStep> step = step_at(seconds, progress);
  return step ? *step->cores : 0;
}

BatchDecision ClockedSource::decide(const TraceStep& offered,
                                    const SourceProgress& progress) const {
  if (batch_ == nullptr) return {.step = offered};
  BatchDecision decision = checked_decision(*batch_, offered, progress, where(progress.step));
  if (decision.step.batch_size % options_.minibatch_size == 0) return decision;
  throw_error(
      "{}: the policy {} decides on {} samples; accepted: a multiple of the minibatch size, {}",
      where(progress.step), batch_->name(), decision.step.batch_size, options_.minibatch_size);
}

std::optional<double> ClockedSource::loss_between(double begin, double end, std::int64_t cores,
                                                  const SourceProgress& progress) const {
  // One round of a cycle shows all numbers of devices that can follow.
  if (availability_.end() == TraceEnd::cycle) end = std::min(end, begin + availability_.length());
  end = std::min(end, kLatestSecond);
  for (std::optional<double> change = availability_.next_change(begin); change && *change < end;
       change = availability_.next_change(*change)) {
    if (cores_at(*change, progress) < cores) return change;
  }
  return std::nullopt;
}

bool ClockedSource::pass(ClockTime& time, double end, std::int64_t cores, const Limit& limit,
                         const SourceProgress& progress) const {
  double now = time.seconds;
  double core_seconds = 0;
  bool reached = false;
  while (now < end && !reached) {
    // cores_at() comes first, because it rejects times beyond the availability's.
    cores = std::min(cores, cores_at(now, progress));
    const double of_cores = static_cast<double>(cores);
    const double last =
        cores == 0
            ? limit.seconds
            : std::min(limit.seconds,
                       now + (limit.core_seconds - time.core_seconds - core_seconds) / of_cores);
    double until = std::min(end, availability_.next_change(now).value_or(end));
    reached = last <= until;
    if (reached) until = std::max(now, last);
    core_seconds += (until - now) * of_cores;
    now = until;
  }
  spend_core_seconds(time, now - time.seconds, core_seconds, times_.model());
  // The time is set exactly, because the availability is read at it.
  time.seconds = now;
  return !reached;
}

ClockedSource::Limit ClockedSource::limit_of(const Budget& budget) const {
  Limit limit;
  if (!reached(budget, {.time = time_}).empty()) return limit;
  if (const auto seconds = budget.seconds()) limit.seconds = *seconds;
  const double price = times_.model().price;
  if (budget.money && price > 0) limit.core_seconds = *budget.money / price * kSecondsOfHour;
  return limit;
}

ClockedSource::Outcome ClockedSource::ended(const ClockTime& time,
                                            const SourceProgress& progress) const {
  if (availability_.end() != TraceEnd::error) return {.end = time};
  throw_error(
      "{}: the availability ends at {:.6g} s, and there is more to train; accepted: a longer one, "
      "or --on-trace-end hold, cycle or stop",
      where(progress.step), availability_.length());
}

ClockedSource::Outcome ClockedSource::simulate(const SourceProgress& progress) const {
  const ClusterModel& cluster = times_.model();
  const Limit limit = limit_of(progress.budget);
  ClockTime time = time_;
  bool idle = false;
  // Spends time of one kind; true if the limit is reached in it.
  const auto is_last = [&](double end, std::int64_t cores, double ClockTime::*kind) {
    const double begin = time.seconds;
    const bool last = !pass(time, end, cores, limit, progress);
    time.*kind += time.seconds - begin;
    return last;
  };
  const auto spent = [&] {
    // The budget is shown exactly, without rounding errors.
    if (time.seconds < limit.seconds) time.money = progress.budget.money.value_or(time.money);
    return Outcome{.end = time, .cause = SourceEnd::Cause::budget};
  };
  for (std::int64_t attempt = 0; attempt < kMostAttempts; ++attempt) {
    const std::optional<TraceStep> offered = step_at(time.seconds, progress);
    if (!offered) {
      const std::optional<double> change = availability_.next_change(time.seconds);
      // With too few devices for good, the clock runs on until the budget of hours is used up.
      const bool waits = change || (availability_.endless() && std::isfinite(limit.seconds));
      if (!waits) return ended(time, progress);
      if (is_last(change.value_or(limit.seconds), 0, &ClockTime::idle_seconds)) return spent();
      idle = true;
      continue;
    }
    BatchDecision decision = decide(*offered, progress);
    const TraceStep step = decision.step;
    const std::int64_t cores = *step.cores;
    const auto restart = [&] {
      ++time.restarts;
      return is_last(time.seconds + cluster.restart_seconds, cores, &ClockTime::restart_seconds);
    };
    if (std::exchange(idle, false) && options_.on_idle == OnIdle::checkpoint && steps_ > 0) {
      if (restart()) return spent();
      continue;
    }
    const std::int64_t minibatches =
        minibatches_of(shortened(step, progress).batch_size, options_.minibatch_size);
    const double seconds = seconds_of_step(times_, minibatches, cores, step.host_cores, steps_);
    const auto loss = loss_between(time.seconds, time.seconds + seconds, cores, progress);
    if (!loss) {
      spend(time, seconds, cores, cluster);
      return Outcome{.step = step,
                     .end = time,
                     .seconds = times_.step_seconds(minibatches, cores, step.host_cores),
                     .inputs = std::move(decision.inputs)};
    }
    if (is_last(*loss, cores, &ClockTime::lost_seconds) || restart()) return spent();
  }
  throw_error(
      "{}: no step has ended in {} attempts until {:.6g} s: each lasts longer than its cores stay; "
      "accepted: shorter steps",
      where(progress.step), kMostAttempts, time.seconds);
}

std::optional<TraceStep> ClockedSource::next(const SourceProgress& progress) const {
  ahead_ = simulate(progress);
  return ahead_->step;
}

const ClockedSource::Outcome& ClockedSource::look_ahead(const SourceProgress& progress) const {
  if (!ahead_) ahead_ = simulate(progress);
  return *ahead_;
}

std::optional<ClockTime> ClockedSource::time_after(const SourceProgress& progress) const {
  const Outcome& ahead = look_ahead(progress);
  if (!ahead.step) return std::nullopt;
  return ahead.end;
}

SourceEnd ClockedSource::end(const SourceProgress& progress) const {
  const Outcome& ahead = look_ahead(progress);
  return {.cause = ahead.cause, .time = ahead.end};
}

std::vector<NamedNumber> ClockedSource::decision_inputs(const SourceProgress& progress) const {
  if (batch_ == nullptr) return {};
  return look_ahead(progress).inputs;
}

std::int64_t ClockedSource::max_batch() const {
  return batch_ == nullptr ? options_.max_batch : batch_->max_batch(options_.max_batch);
}

bool ClockedSource::needs_noise_scale() const {
  return options_.needs_noise_scale || (batch_ != nullptr && batch_->needs_noise_scale());
}

void ClockedSource::taken(const TraceStep& step, const SourceProgress& after) {
  if (!ahead_ || !ahead_->step)
    throw Error("taken() was called without next(); accepted: after it");
  if (batch_ != nullptr) {
    batch_->observe({.step = step, .after = after, .seconds = ahead_->seconds});
  }
  time_ = ahead_->end;
  ahead_.reset();
  ++steps_;
}

std::string ClockedSource::where(StepIndex step) const {
  return fmt::format("{} at {:.6g} s, step {} of the run", availability_.source(), time_.seconds,
                     step.value() + 1);
}

std::string ClockedSource::binding() const {
  return fmt::format("policy {} idle {} minibatch {} {}", options_.policy,
                     static_cast<int>(options_.on_idle), options_.minibatch_size,
                     text_of(options_.cluster));
}

std::string ClockedSource::devices_until(double end) const {
  Sha256 sha;
  for (const AvailabilityChange& change : availability_.changes()) {
    if (change.seconds > end) break;
    sha.add(fmt::format("{} {}\n", change.seconds, change.devices));
  }
  // The devices after the length follow from it and from the kind of end.
  if (availability_.length() <= end) {
    sha.add(fmt::format("{} {}\n", availability_.length(),
                        choice_name(kTraceEnds, availability_.end())));
  }
  return sha.hex();
}

void ClockedSource::visit_state(StateVisitor& state, std::int64_t steps) {
  visit_clock(state, binding(), time_);
  const std::string devices = devices_until(time_.seconds);
  if (state.bound(kDevices, devices) != devices && !state.forks()) {
    throw_error(
        "{}: the devices until {:.6g} s are not those that the state has used; accepted: the same",
        availability_.source(), time_.seconds);
  }
  visit_policy(state, batch_.get());
  if (!state.loading()) return;
  steps_ = steps;
  ahead_.reset();
}

}  // namespace rubato
