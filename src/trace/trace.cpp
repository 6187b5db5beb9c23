#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/trace/trace.hpp>

#include "core/check.hpp"

namespace rubato {

namespace {

void check_range(const Trace& trace, StepIndex step, std::string_view what, std::int64_t value,
                 std::int64_t max) {
  if (value >= 1 && value <= max) return;
  throw Error(fmt::format("{}: {} {}; accepted: a whole number from 1 to {}", trace.where(step),
                          what, value, max));
}

}  // namespace

Trace::Trace(std::vector<TraceStep> steps, TraceEnd end, std::string source)
    : steps_(std::move(steps)), end_(end), source_(std::move(source)) {
  if (steps_.empty()) {
    throw Error(fmt::format("{}: the trace has no steps; accepted: at least one", source_));
  }
  StepIndex index;
  for (const TraceStep& step : steps_) {
    check_range(*this, index, "batch size", step.batch_size, kMaxBatchSize);
    if (step.cores) check_range(*this, index, "cores", *step.cores, kMaxCores);
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

}  // namespace rubato
