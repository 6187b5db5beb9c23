#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/steps/step_source.hpp>

#include "base/state/sha256.hpp"

namespace rubato {

namespace {

constexpr std::string_view kRows = "rows";

// A fingerprint of the batch sizes of the first steps; empty if the trace has fewer.
std::string rows_fingerprint(const Trace& trace, std::int64_t steps) {
  constexpr std::size_t kAtOnce = 4096;
  std::array<std::int64_t, kAtOnce> sizes{};
  std::size_t held = 0;
  Sha256 sha;
  const auto flush = [&] {
    sha.add(sizes.data(), held * sizeof(std::int64_t));
    held = 0;
  };
  for (StepIndex step; step.value() < steps; ++step) {
    const std::optional<TraceStep> row = trace.at(step);
    if (!row) return {};
    sizes[held++] = row->batch_size;
    if (held == kAtOnce) flush();
  }
  flush();
  return sha.hex();
}

}  // namespace

TraceStep shortened(TraceStep asked, const SourceProgress& progress) {
  asked.batch_size = std::min(asked.batch_size, progress.samples_left.value_or(asked.batch_size));
  return asked;
}

std::string StepSource::where(StepIndex step) const {
  return fmt::format("step {} of its source", step.value() + 1);
}

std::int64_t TraceSource::max_batch() const {
  const auto largest = std::max_element(
      trace_.steps().begin(), trace_.steps().end(),
      [](const TraceStep& a, const TraceStep& b) { return a.batch_size < b.batch_size; });
  return largest->batch_size;
}

void TraceSource::visit_state(StateVisitor& state, std::int64_t steps) {
  const std::string rows = rows_fingerprint(trace_, steps);
  if (state.bound(kRows, rows) == rows) return;
  throw Error(
      fmt::format("{}: the trace is not that of the run: its batch sizes differ within the {} "
                  "step{} taken so far; accepted: the same up to here, and any rows after it",
                  trace_.where(StepIndex{steps - 1}), steps, steps == 1 ? "" : "s"));
}

FunctionSource::FunctionSource(Function function, FunctionSourceOptions options)
    : function_(std::move(function)), options_(options) {
  if (!function_)
    throw Error("a source of steps without a function; accepted: one that is not empty");
}

}  // namespace rubato
