#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/sim/timed_source.hpp>

#include "sim/clock.hpp"

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

TimedSource::TimedSource(std::unique_ptr<StepSource> source, Options options)
    : source_(without_clock(std::move(source))),
      options_(std::move(options)),
      times_(options_.cluster) {
  if (options_.minibatch_size >= 1 && options_.cores >= 1) return;
  throw Error(fmt::format(
      "the clock has minibatches of {} samples and {} cores; accepted: at least 1 of each",
      options_.minibatch_size, options_.cores));
}

std::optional<TraceStep> TimedSource::next(const SourceProgress& progress) const {
  return source_->next(progress);
}

ClockTime TimedSource::after(const TraceStep& step) const {
  const std::int64_t cores = step.cores.value_or(options_.cores);
  ClockTime time = time_;
  spend(time, seconds_of_step(times_, step.batch_size / options_.minibatch_size, cores, steps_),
        cores, options_.cluster);
  return time;
}

std::optional<ClockTime> TimedSource::time_after(const SourceProgress& progress) const {
  const std::optional<TraceStep> step = next(progress);
  if (!step) return std::nullopt;
  return after(*step);
}

void TimedSource::taken(const TraceStep& step, const SourceProgress& progress) {
  time_ = after(step);
  ++steps_;
  source_->taken(step, progress);
}

std::string TimedSource::binding() const {
  return fmt::format("minibatch {} cores {} {}", options_.minibatch_size, options_.cores,
                     text_of(options_.cluster));
}

void TimedSource::save(State& state, std::int64_t steps) const {
  source_->save(state, steps);
  save_clock(state, binding(), time_);
}

void TimedSource::load(const State& state, std::int64_t steps) {
  source_->load(state, steps);
  time_ = load_clock(state, binding());
  steps_ = steps;
}

}  // namespace rubato
