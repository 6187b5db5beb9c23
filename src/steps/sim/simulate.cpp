#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/steps/modelled_time.hpp>

namespace rubato {

namespace {

void require_known(const Budget& budget, const StepSource& source) {
  require_valid(budget);
  if (budget.iterations) {
    throw Error(
        "a budget of iterations: only training knows them; accepted: samples, hours, money");
  }
  if (budget.needs_clock() && !source.has_clock()) {
    throw Error(fmt::format(
        "a budget of {} needs modelled time; accepted: with a source of the steps that has a clock",
        to_text(budget)));
  }
}

}  // namespace

SimulationResult simulate(StepSource& source, const PlanOptions& options,
                          const std::function<void(const SimulatedStep& step)>& on_step,
                          const Budget& budget) {
  require_known(budget, source);
  if (options.epochs < 1) {
    throw Error(fmt::format("{} epochs: at least 1 is needed", options.epochs));
  }
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
