// The options of training that a configuration has. train_options() is where a new one is passed
// on, unless it is a row of step_options.def that does so itself.

#include <algorithm>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/loop/faults.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "base/core/vectors.hpp"
#include "chosen_parts.hpp"
#include "loop/optim/make_optimizer.hpp"

namespace rubato {

std::vector<std::string> no_decay_patterns(const std::string& no_decay) {
  std::vector<std::string> patterns;
  std::istringstream text(no_decay);
  for (std::string pattern; std::getline(text, pattern, ',');) patterns.push_back(pattern);
  return patterns;
}

namespace {

std::vector<ParameterGroup> parameter_groups(const std::string& no_decay) {
  return vector_of(no_decay_patterns(no_decay), [](const std::string& pattern) {
    return pattern == kVectorsPattern ? no_decay_for_vectors() : no_decay_for(pattern);
  });
}

std::optional<LookaheadOptions> lookahead_options(const RunConfiguration& options) {
  if (options.lookahead == 0) return std::nullopt;
  return LookaheadOptions{.k = options.lookahead,
                          .alpha = options.lookahead_alpha,
                          .start = options.lookahead_start,
                          .weights = options.lookahead_weights};
}

// Empty if all parts of the schedule are built-in, which the library makes from its text.
std::function<std::unique_ptr<LrSchedule>()> own_schedule(const RunConfiguration& options) {
  const bool own = std::ranges::any_of(options.schedule->names(), [&](std::string_view name) {
    return options.extensions.schedules.find(name) != nullptr;
  });
  if (!own) return {};
  return [schedule = options.schedule, watch = watched_metric(options)] {
    return schedule->make(watch);
  };
}

}  // namespace

OptimizerOptions optimizer_options(const RunConfiguration& run) {
  if (run.optimizer->own) return {};
  OptimizerOptions optimizer{.method = run.optimizer->method, .weight_decay = run.weight_decay};
  if (run.nesterov) set_nesterov(optimizer.method);
  optimizer.momentum = run.momentum.value_or(facts_of(optimizer.method).usual_momentum.value_or(0));
  return optimizer;
}

TestMetrics test_metrics_of(const RunConfiguration& run) {
  TestMetrics metrics = run.metric->built_in;
  if (run.top_k > 0) metrics.top_k = run.top_k;
  return metrics;
}

Budget budget_of(const RunConfiguration& run) {
  return {
      .iterations = run.iterations, .samples = run.samples, .hours = run.hours, .money = run.money};
}

TrainOptions train_options(const RunConfiguration& options) {
  FaultOptions faults = *options.faults;
  faults.planned = *options.fault;
  const TestMetrics metrics = test_metrics_of(options);
  // In modelled time stragglers are part of the cluster, and nobody waits for them here.
  std::vector<Straggler> stragglers;
  if (options.clock == Clock::real) stragglers = *options.straggler;
  TrainOptions train{.epochs = options.epochs,
                     .budget = budget_of(options),
                     .minibatch_size = options.minibatch,
                     .remainder = options.remainder,
                     .learning_rate = options.learning_rate,
                     .reference_batch_size = options.reference_batch,
                     .rule = *options.rule,
                     .adjustments = {.memories = *options.memory,
                                     .decay = options.decay_rule,
                                     .on_batch_change = *options.on_batch_change},
                     .schedule = *options.schedule,
                     .schedule_unit = options.schedule_unit,
                     .own_schedule = own_schedule(options),
                     .watch = watched_metric(options),
                     .optimizer = optimizer_options(options),
                     .own_optimizer = options.optimizer->own.value_or(OwnOptimizer()),
                     .groups = parameter_groups(options.no_decay),
                     .lookahead = lookahead_options(options),
                     .gradient_transforms = *options.transform,
                     .sampler = *options.sampler,
                     .seed = options.seed,
                     .top_k = metrics.top_k,
                     .mse = metrics.mse,
                     .perplexity = metrics.perplexity,
                     .log_noise = options.log_noise,
                     .digest_every = options.digest->every,
                     .metrics = options.metric->own,
                     .log_minibatches = options.log_minibatches,
                     .cores = options.cores,
                     .assignment = options.assignment,
                     .reduce = options.reduce->own ? "auto" : options.reduce.text(),
                     .own_reducer = options.reduce->own.value_or(OwnReducer()),
                     .exact = options.exact,
                     .faults = std::move(faults),
                     .stragglers = std::move(stragglers),
                     .threads = static_cast<int>(options.threads)};
#define RUBATO_STEP_OPTION(type, member, ...) train.member = options.member;
#include <rubato/loop/step_options.def>
#undef RUBATO_OPTION
  return train;
}

}  // namespace rubato
