#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/sim/clocked_source.hpp>

#include "state/sha256.hpp"

namespace rubato {

namespace {

constexpr std::string_view kClock = "source.clock";
constexpr std::string_view kBinding = "source.binding";
constexpr std::string_view kDevices = "source.devices";
// Attempts at one step. More, and none will ever succeed.
constexpr std::int64_t kMostAttempts = 100'000;
constexpr double kSecondsOfHour = 3600;
// Beyond it no availability says anything (Availability::at()).
constexpr double kLatestSecond = 3e9;

}  // namespace

ClockedSource::ClockedSource(Availability availability, StepOfDevices step_of, ClockOptions options)
    : availability_(std::move(availability)),
      step_of_(std::move(step_of)),
      options_(std::move(options)),
      times_(options_.cluster) {
  if (!step_of_) throw Error("the clock has no policy; accepted: ClockOptions::step_of");
  if (options_.minibatch_size < 1 || options_.max_batch < options_.minibatch_size) {
    throw Error(fmt::format(
        "the clock has minibatches of {} samples and steps of at most {}; accepted: at least 1, "
        "and at least a minibatch",
        options_.minibatch_size, options_.max_batch));
  }
}

std::optional<TraceStep> ClockedSource::step_at(double seconds,
                                                const SourceProgress& progress) const {
  if (seconds > kLatestSecond) {
    throw Error(fmt::format("{}: the clock has come to {:.6g} s; accepted: up to {:.6g} s",
                            where(progress.step), seconds, kLatestSecond));
  }
  const std::int64_t devices = availability_.at(seconds).value_or(0);
  std::optional<TraceStep> step = devices > 0 ? step_of_(devices, progress) : std::nullopt;
  if (!step) return std::nullopt;
  if (!step->cores) step->cores = devices;
  if (step->batch_size >= options_.minibatch_size && *step->cores >= 1) return step;
  throw Error(fmt::format(
      "{}: the policy makes a step of {} samples on {} cores of {} devices; accepted: "
      "a minibatch of {} at least, on one core at least",
      where(progress.step), step->batch_size, *step->cores, devices, options_.minibatch_size));
}

std::int64_t ClockedSource::cores_at(double seconds, const SourceProgress& progress) const {
  const std::optional<TraceStep> step = step_at(seconds, progress);
  return step ? *step->cores : 0;
}

std::optional<double> ClockedSource::loss_between(double begin, double end, std::int64_t cores,
                                                  const SourceProgress& progress) const {
  // After a round of a cycle nothing comes that was not there in it.
  if (availability_.end() == TraceEnd::cycle) end = std::min(end, begin + availability_.length());
  end = std::min(end, kLatestSecond);
  for (std::optional<double> change = availability_.next_change(begin); change && *change < end;
       change = availability_.next_change(*change)) {
    if (cores_at(*change, progress) < cores) return change;
  }
  return std::nullopt;
}

double ClockedSource::core_seconds(double begin, double end, std::int64_t most,
                                   const SourceProgress& progress) const {
  double sum = 0;
  while (begin < end) {
    // First, as it refuses times that the availability knows nothing of.
    const std::int64_t cores = std::min(most, cores_at(begin, progress));
    const double until = std::min(end, availability_.next_change(begin).value_or(end));
    sum += (until - begin) * static_cast<double>(cores);
    begin = until;
  }
  return sum;
}

std::optional<ClockedSource::Outcome> ClockedSource::simulate(
    const SourceProgress& progress) const {
  const ClusterModel& cluster = times_.model();
  ClockTime time = time_;
  bool idle = false;
  for (std::int64_t attempt = 0; attempt < kMostAttempts; ++attempt) {
    const std::optional<TraceStep> step = step_at(time.seconds, progress);
    if (!step) {
      const std::optional<double> change = availability_.next_change(time.seconds);
      if (!change) return std::nullopt;
      time.idle_seconds += *change - time.seconds;
      time.seconds = *change;
      idle = true;
      continue;
    }
    const std::int64_t cores = *step->cores;
    const auto spend = [&](double seconds, double of_cores) {
      time.seconds += seconds;
      time.core_seconds += of_cores;
      time.money = time.core_seconds / kSecondsOfHour * cluster.price;
    };
    const auto restart = [&] {
      const double end = time.seconds + cluster.restart_seconds;
      spend(cluster.restart_seconds, core_seconds(time.seconds, end, cores, progress));
      ++time.restarts;
    };
    // While all of them are there.
    const auto work = [&](double seconds) { spend(seconds, seconds * static_cast<double>(cores)); };
    if (std::exchange(idle, false) && options_.on_idle == OnIdle::checkpoint && steps_ > 0) {
      restart();
      continue;
    }
    double seconds = times_.step_seconds(step->batch_size / options_.minibatch_size, cores);
    if (cluster.checkpoint_steps > 0 && (steps_ + 1) % cluster.checkpoint_steps == 0) {
      seconds += cluster.checkpoint_seconds;
    }
    const auto loss = loss_between(time.seconds, time.seconds + seconds, cores, progress);
    if (!loss) {
      work(seconds);
      return Outcome{.step = *step, .end = time};
    }
    time.lost_seconds += *loss - time.seconds;
    work(*loss - time.seconds);
    restart();
  }
  throw Error(
      fmt::format("{}: no step has ended in {} attempts until {:.6g} s: each lasts longer than its "
                  "cores stay; accepted: shorter steps",
                  where(progress.step), kMostAttempts, time.seconds));
}

std::optional<TraceStep> ClockedSource::next(const SourceProgress& progress) const {
  ahead_ = simulate(progress);
  if (!ahead_) return std::nullopt;
  return ahead_->step;
}

std::optional<ClockTime> ClockedSource::time_after(const SourceProgress& progress) const {
  if (!ahead_) ahead_ = simulate(progress);
  if (!ahead_) return std::nullopt;
  return ahead_->end;
}

void ClockedSource::taken(const TraceStep& /*step*/, const SourceProgress& /*after*/) {
  if (!ahead_) throw Error("taken() was called without next(); accepted: after it");
  time_ = ahead_->end;
  ahead_.reset();
  ++steps_;
}

std::string ClockedSource::where(StepIndex step) const {
  return fmt::format("{} at {:.6g} s, step {} of the run", availability_.source(), time_.seconds,
                     step.value() + 1);
}

std::string ClockedSource::binding() const {
  const ClusterModel& c = options_.cluster;
  std::string text = fmt::format(
      "policy {} idle {} minibatch {} substep {} algorithm {} bytes {} hosts {} within {} {} "
      "between {} {} update {} checkpoint {} {} restart {}\n",
      options_.policy, static_cast<int>(options_.on_idle), options_.minibatch_size,
      c.substep_seconds, c.algorithm, c.gradient_bytes, c.cores_per_host, c.latency_within_host,
      c.bandwidth_within_host, c.latency_between_hosts, c.bandwidth_between_hosts, c.update_seconds,
      c.checkpoint_steps, c.checkpoint_seconds, c.restart_seconds);
  for (const SlowCore& slow : c.slow_cores) {
    text += fmt::format("slow {} {}\n", slow.core.value(), slow.factor);
  }
  return text;
}

std::string ClockedSource::devices_until(double end) const {
  Sha256 sha;
  for (const AvailabilityChange& change : availability_.changes()) {
    if (change.seconds > end) break;
    sha.add(fmt::format("{} {}\n", change.seconds, change.devices));
  }
  // What comes after its length follows from that.
  if (availability_.length() <= end) {
    sha.add(fmt::format("{} {}\n", availability_.length(),
                        choice_name(kTraceEnds, availability_.end())));
  }
  return sha.hex();
}

void ClockedSource::save(State& state, std::int64_t steps) const {
  static_cast<void>(steps);
  state.put_text(kBinding, binding());
  state.put(kClock, time_.state());
  state.put_text(kDevices, devices_until(time_.seconds));
}

void ClockedSource::load(const State& state, std::int64_t steps) {
  if (state.text(kBinding) != binding()) {
    throw Error("the state is of another cluster or policy; accepted: the same");
  }
  time_ = ClockTime::of_state(state.values<double>(kClock));
  if (state.text(kDevices) != devices_until(time_.seconds)) {
    throw Error(
        fmt::format("{}: the devices until {:.6g} s are not those that the state has used; "
                    "accepted: the same",
                    availability_.source(), time_.seconds));
  }
  steps_ = steps;
  ahead_.reset();
}

}  // namespace rubato
