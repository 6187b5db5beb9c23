#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/steps/trace.hpp>

#include "base/core/check.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

// The limit keeps sums of cores far within 64 bits.
bool is_cores_of_host(std::int64_t cores) {
  return cores >= 0 && cores <= kMaxCores;
}

}  // namespace

std::string objection_to(const TraceStep& step) {
  constexpr std::string_view kAccepted = "accepted: a whole number from 1 to";
  if (step.batch_size < 1 || step.batch_size > kMaxBatchSize) {
    return fmt::format("batch size {}; {} {}", step.batch_size, kAccepted, kMaxBatchSize);
  }
  if (step.cores && (*step.cores < 1 || *step.cores > kMaxCores)) {
    return fmt::format("cores {}; {} {}", *step.cores, kAccepted, kMaxCores);
  }
  const std::vector<std::int64_t>& hosts = step.host_cores;
  if (hosts.empty()) return {};
  if (step.cores && std::all_of(hosts.begin(), hosts.end(), is_cores_of_host) &&
      std::accumulate(hosts.begin(), hosts.end(), std::int64_t{0}) == *step.cores) {
    return {};
  }
  return fmt::format("cores of hosts {}{}; accepted: at least 0 of each, and together the step's",
                     fmt::join(hosts, "+"), step.cores ? fmt::format(" of {}", *step.cores) : "");
}

Trace::Trace(std::vector<TraceStep> steps, TraceEnd end, std::string source, std::string scaling)
    : steps_(std::move(steps)),
      end_(end),
      source_(std::move(source)),
      scaling_(std::move(scaling)) {
  if (steps_.empty()) throw_error("{}: the trace has no steps; accepted: at least one", source_);
  StepIndex index;
  for (const TraceStep& step : steps_) {
    const std::string objection = objection_to(step);
    if (!objection.empty()) throw_error("{}: {}", where(index), objection);
    ++index;
  }
}

Trace Trace::constant(std::int64_t batch_size) {
  return Trace({{batch_size, std::nullopt}}, TraceEnd::hold,
               fmt::format("constant {}", batch_size));
}

std::optional<std::size_t> Trace::row_of(StepIndex step) const {
  RUBATO_CHECK(step.value() >= 0, "steps are counted from 0");
  if (step.value() < length()) return step.offset();
  if (end_ == TraceEnd::hold) return steps_.size() - 1;
  if (end_ == TraceEnd::cycle) return step.offset() % steps_.size();
  return std::nullopt;
}

std::optional<TraceStep> Trace::at(StepIndex step) const {
  const std::optional<std::size_t> row = row_of(step);
  if (!row) return std::nullopt;
  return steps_[*row];
}

std::string Trace::where(StepIndex step) const {
  if (!from_csv_) return fmt::format("{}, step {}", source_, step.value() + 1);
  // The header is line 1, and blank lines stand only at the end.
  return fmt::format("{}:{}", source_, row_of(step).value_or(steps_.size()) + 2);
}

namespace {

struct Run {
  std::int64_t batch_size;
  int steps;
};

// Capacity is acquired step by step while the market is calm and lost at once when it is not: three
// climbs, each ended by a preemption. Below 256 some of 8 cores are idle with minibatches of 32; at
// 288, 352 and 416 they have unequal numbers of substeps. The sum (18,304 samples) is not a
// multiple of the 12,000 samples of the built-in digits, so that every epoch meets another part of
// the trace.
constexpr std::array<Run, 20> kRuns{{
    {32, 2},  {64, 2},  {96, 2},  {128, 3}, {192, 3}, {256, 4}, {352, 3}, {416, 3}, {512, 5},  //
    {160, 2}, {256, 4}, {352, 4},                                                              //
    {64, 3},  {128, 3}, {224, 3}, {320, 4}, {448, 4}, {512, 5}, {288, 4}, {96, 3},
}};

}  // namespace

Trace Trace::elastic() {
  std::vector<TraceStep> steps;
  for (const Run& run : kRuns) {
    steps.insert(steps.end(), static_cast<std::size_t>(run.steps), {run.batch_size, std::nullopt});
  }
  return Trace(std::move(steps), TraceEnd::cycle, "elastic");
}

}  // namespace rubato
