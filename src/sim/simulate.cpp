#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/sim/simulate.hpp>

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

void take_end(SimulationResult& result, const SourceEnd& end, const Budget& budget) {
  result.ended = end.cause;
  if (end.time) result.time = end.time;
  if (end.cause == SourceEnd::Cause::budget) result.reached = reached(budget, {.time = end.time});
}

}  // namespace

SimulationResult simulate(StepSource& source, const PlanOptions& options,
                          const std::function<void(const SimulatedStep& step)>& on_step,
                          const Budget& budget) {
  require_known(budget, source);
  if (options.epochs < 1) {
    throw Error(fmt::format("{} epochs: at least 1 is needed", options.epochs));
  }
  const StepPlanner planner(options);
  SimulationResult result;
  StepPlace place;
  const auto progress = [&] {
    return SourceProgress{.step = place.step,
                          .epoch = place.epoch,
                          .samples = result.samples,
                          .time = result.time,
                          .budget = budget,
                          .samples_left = planner.samples_left(place)};
  };
  while (place.epoch.value() < options.epochs) {
    const std::optional<TraceStep> asked = source.next(progress());
    if (!asked) {
      take_end(result, source.end(progress()), budget);
      break;
    }
    const std::string objection = planner.objection(*asked);
    if (!objection.empty()) {
      throw Error(fmt::format("{}: {}", source.where(place.step), objection));
    }
    const std::optional<StepPlan> plan = planner.plan(place, *asked);
    if (!plan) {
      // It begins the next epoch.
      place = {.step = place.step, .epoch = EpochIndex{place.epoch.value() + 1}};
      continue;
    }
    const TraceStep trained = shortened(*asked, progress());
    const SimulatedStep step{.epoch = place.epoch,
                             .plan = *plan,
                             .time = source.time_after(progress()),
                             .decision_inputs = source.decision_inputs(progress())};
    place = planner.after(place, *plan);
    result.samples += plan->batch_size;
    ++result.steps;
    result.time = step.time;
    source.taken(trained, progress());
    if (!planner.carries() && place.samples >= planner.samples_per_epoch()) {
      place = {.step = place.step, .epoch = EpochIndex{place.epoch.value() + 1}};
    }
    if (on_step) on_step(step);
    result.reached = reached(budget, {.samples = result.samples, .time = result.time});
    if (!result.reached.empty()) break;
  }
  if (!result.reached.empty() && !result.ended) {
    // The epoch is whole where it has no room for another step.
    const std::optional<TraceStep> asked = source.next(progress());
    if (asked && !planner.plan(place, *asked)) ++place.epoch;
  }
  result.epochs = place.epoch.value();
  return result;
}

}  // namespace rubato
