#include "checked_parts.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <rubato/base/error.hpp>

#include "base/core/throw_error.hpp"
#include "checked_options.hpp"

namespace rubato {

void bind_data(StateVisitor& state, const Objective& objective) {
  const auto require_same = [](const std::string& before, const std::string& now,
                               std::string_view what) {
    if (before == now) return;
    throw_error(
        "the {} data are not the data of the run; accepted: the same samples in the same order",
        what);
  };
  const std::string train = objective.fingerprint();
  require_same(state.bound("data.train", train), train, "training");
  // A test set is compared only if there was one then and is one now.
  if (!objective.has_test()) return;
  const std::string test = objective.test_fingerprint();
  require_same(state.bound_if_there("data.test", test), test, "test");
}

// The epoch ends where the row after it says so, a row that no step has used.
void require_same_epochs(Planner planner, const Walk& walk, bool part) {
  planner.go_to(EpochIndex{0}, StepIndex{0});
  for (EpochIndex epoch; epoch < walk.epoch(); ++epoch) static_cast<void>(planner.next());
  // After a part of an epoch was evaluated, no step may follow in that epoch.
  if (!part && planner.next_step() == walk.first_step()) return;
  throw_error(
      "{}: epoch {} of the run ended before this step, and in this trace it continues; accepted: a "
      "trace in which it ends there, too",
      planner.trace().where(walk.step()), walk.epoch().value() + (part ? 1 : 0));
}

namespace {

void require_independence_of_cores(const Objective& objective, const TrainOptions& options) {
  const std::string why = objective.depends_on_cores();
  if (why.empty()) return;
  if (options.exact) throw_error("{}; accepted: with exact = false", why);
  if (options.dealing == Dealing::in_turns) {
    throw_error(
        "{}, and evaluators dealt in turns divide a core's minibatches; accepted: "
        "Dealing::by_thread",
        why);
  }
}

// Several hosts exchange nothing but sums.
void require_sums(const Objective& objective, const TrainOptions& options) {
  if (!are_several(options.hosts.get())) return;
  if (const std::string why = objective.depends_on_cores(); !why.empty()) {
    throw_error("{}; accepted: on one host", why);
  }
  if (const std::string why = objective.needs_one_host(); !why.empty()) {
    throw_error("{}; accepted: on one host", why);
  }
}

bool is_of_test(const WatchedMetric& metric) {
  return metric.metric() && *metric.metric() != Metric::train_loss;
}

}  // namespace

std::unique_ptr<StepSource> checked_source(std::unique_ptr<StepSource> source) {
  if (source == nullptr)
    throw Error("a trainer needs a source of its steps; accepted: any but null");
  if (source->max_batch() < 1) {
    throw_error("the source of the steps has a largest batch size of {}; accepted: at least 1",
                source->max_batch());
  }
  return source;
}

TrainOptions options_for(const StepSource& source, TrainOptions options) {
  options.log_noise = options.log_noise || source.needs_noise_scale();
  if (options.budget.needs_clock() && !source.has_clock()) {
    throw_error(
        "a budget of {} needs modelled time; accepted: with a source of the steps that has a "
        "clock, such as ClockedSource",
        to_text(options.budget));
  }
  return checked_options(std::move(options));
}

PlanOptions plan_options(const Objective& objective, const TrainOptions& options) {
  return {.dataset_size = objective.samples(),
          .minibatch_size = options.minibatch_size,
          .cores = options.cores,
          .remainder = options.remainder,
          .epochs = options.epochs};
}

std::optional<Planner> checked_trace(const StepSource& source, const Objective& objective,
                                     const TrainOptions& options) {
  if (source.trace() == nullptr) return std::nullopt;
  Planner planner(*source.trace(), plan_options(objective, options));
  require_epochs(planner, options.epochs);
  return planner;
}

StepRange steps_to_come(const StepSource& source, const Walk& walk) {
  StepRange range{.least = walk.max_minibatches(), .most = walk.max_minibatches()};
  if (source.trace() == nullptr) return range;
  const std::int64_t minibatch = walk.planner().options().minibatch_size;
  for (const TraceStep& step : source.trace()->steps()) {
    range.least = std::min(range.least, step.batch_size / minibatch);
    if (!step.host_cores.empty()) range.host_cores.insert(step.host_cores);
  }
  return range;
}

std::unique_ptr<LrSchedule> schedule_of(const TrainOptions& options) {
  if (options.own_schedule) {
    auto own = options.own_schedule();
    if (own == nullptr) throw Error("own_schedule makes no schedule; accepted: any but null");
    return own;
  }
  auto schedule = options.schedule.make(options.watch);
  require_rate(*schedule, options.schedule.text(), options.schedule_unit);
  return schedule;
}

void require_trainable(const Objective& objective, const TrainOptions& options,
                       const LrSchedule& schedule) {
  require_independence_of_cores(objective, options);
  require_sums(objective, options);
  if (schedule.watches() && !objective.has_test() && is_of_test(options.watch)) {
    throw_error("the schedule watches {}, but there is no test set; accepted: train-loss",
                options.watch.name());
  }
}

}  // namespace rubato
