// This file has the clock's numbers and the budget, which all sources of steps share, and the two
// sources that need no model of time, TraceSource and FunctionSource. If a step reaches several
// limits, reached() names the first of iterations, samples, hours and money. TraceSource binds a
// state to a hash of the batch sizes of the steps that have been taken, so a run may continue with
// a trace that differs in cores or in later rows.

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/steps/step_source.hpp>

#include "base/core/seconds.hpp"
#include "base/core/throw_error.hpp"
#include "base/state/sha256.hpp"

namespace rubato {

void ClockTime::visit_state(NumberVisitor& numbers) {
  for (double* const number :
       {&seconds, &core_seconds, &money, &idle_seconds, &lost_seconds, &restart_seconds}) {
    numbers.number(*number);
    numbers.require(std::isfinite(*number) && *number >= 0);
  }
  numbers.count(restarts);
}

Goodput goodput_of(std::int64_t samples, const ClockTime& time) {
  const auto of_hours = [samples](double seconds) {
    return seconds > 0 ? static_cast<double>(samples) / seconds * kSecondsOfHour : 0;
  };
  return {.samples_per_hour = of_hours(time.seconds),
          .samples_per_core_hour = of_hours(time.core_seconds)};
}

namespace {

void require_positive(std::string_view what, const std::optional<double>& value) {
  if (!value || (*value > 0 && std::isfinite(*value))) return;
  throw_error("{} {}: accepted are values above 0", *value, what);
}

}  // namespace

std::optional<double> Budget::seconds() const {
  if (!hours) return std::nullopt;
  return *hours * kSecondsOfHour;
}

void require_valid(const Budget& budget) {
  require_positive("iterations", budget.iterations);
  if (budget.samples && *budget.samples < 1) {
    throw_error("{} samples to train: at least 1 is needed", *budget.samples);
  }
  require_positive("hours", budget.hours);
  require_positive("units of money", budget.money);
}

std::string to_text(const Budget& budget) {
  std::string text;
  const auto put = [&text](std::string_view what, const auto& value) {
    if (value) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, *value);
  };
  put("iterations", budget.iterations);
  put("samples", budget.samples);
  put("hours", budget.hours);
  put("money", budget.money);
  return text;
}

std::string reached(const Budget& budget, const Spent& spent) {
  if (budget.iterations && spent.iterations >= *budget.iterations) {
    return fmt::format("{:.6g} iterations reached", *budget.iterations);
  }
  if (budget.samples && spent.samples >= *budget.samples) {
    return fmt::format("{} samples reached", *budget.samples);
  }
  if (!spent.time) return {};
  if (budget.hours && spent.time->seconds >= *budget.seconds()) {
    return fmt::format("{:.6g} hours of the clock reached", *budget.hours);
  }
  if (budget.money && spent.time->money >= *budget.money) {
    return fmt::format("{:.6g} of money reached", *budget.money);
  }
  return {};
}

double share_spent(const Budget& budget, const Spent& spent) {
  double share = 0;
  const auto of = [&share](double reached, double limit) {
    share = std::clamp(reached / limit, share, 1.0);
  };
  if (budget.iterations) of(spent.iterations, *budget.iterations);
  if (budget.samples) {
    of(static_cast<double>(spent.samples), static_cast<double>(*budget.samples));
  }
  if (budget.hours && spent.time) of(spent.time->seconds, *budget.seconds());
  if (budget.money && spent.time) of(spent.time->money, *budget.money);
  return share;
}

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
  // A state without rows is that of another kind of source.
  if (state.forks() || state.bound(kRows, rows) == rows) return;
  throw_error(
      "{}: the trace is not that of the run: its batch sizes differ within the {} step{} taken so "
      "far; accepted: the same up to here, and any rows after it",
      trace_.where(StepIndex{steps - 1}), steps, steps == 1 ? "" : "s");
}

FunctionSource::FunctionSource(Function function, FunctionSourceOptions options)
    : function_(std::move(function)), options_(options) {
  if (!function_)
    throw Error("a source of steps without a function; accepted: one that is not empty");
}

}  // namespace rubato
