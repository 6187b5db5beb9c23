#include "checked_options.hpp"

#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/machine.hpp>
#include <rubato/loop/reducer.hpp>

#include "checked_metrics.hpp"
#include "checked_name.hpp"

namespace rubato {

namespace {

// The user makes an own optimizer completely, so options that it would not see are refused.
void require_nothing_ignored(const TrainOptions& options) {
  const auto refuse = [](const std::string& what) {
    throw Error(
        fmt::format("{}, which own_optimizer does not see; accepted: none; set the "
                    "options of the optimizer that it makes",
                    what));
  };
  if (options.optimizer.weight_decay != 0) {
    refuse(fmt::format("optimizer.weight_decay {}", options.optimizer.weight_decay));
  }
  for (const ParameterGroup& group : options.groups) {
    if (group.options.weight_decay || group.options.momentum) {
      refuse(fmt::format("parameter group '{}' has its own {}", group.name,
                         group.options.weight_decay ? "weight decay" : "momentum"));
    }
  }
}

void require_transforms(const std::vector<OwnGradientTransform>& transforms) {
  std::set<std::string_view> names;
  for (const OwnGradientTransform& transform : transforms) {
    require_name(transform.name, "gradient transform");
    if (names.insert(transform.name).second) continue;
    throw Error(fmt::format("two gradient transforms are called {}; accepted: different names",
                            transform.name));
  }
}

void require_reduction(const TrainOptions& options) {
  const OwnReducer& own = options.own_reducer;
  if (!own) {
    if (options.exact) require_reproducible(options.reduce);
    return;
  }
  require_name(own.name, "reducer");
  if (options.reduce != "auto") {
    throw Error(fmt::format("reducer {} and own_reducer {}; accepted: one of them", options.reduce,
                            own.name));
  }
  if (options.exact && !own.reproducible) {
    throw Error(
        fmt::format("reducer {} does not promise the same bits for every number of threads "
                    "and cores; accepted: OwnReducer::reproducible if its sum has the order "
                    "documented there, or training without exactness",
                    own.name));
  }
}

void require_for_hosts(const TrainOptions& options) {
  if (!are_several(options.hosts.get())) return;
  const auto refuse = [&](std::string_view what) {
    throw Error(fmt::format("{} on several hosts; accepted: on one host", what));
  };
  if (!options.faults.planned.empty() || options.faults.rate > 0) refuse("cores that die");
  if (options.log_minibatches) refuse("a record of every minibatch");
}

// Sets the rule's form of momentum if the user chose none and the optimizer has a choice.
void choose_momentum_form(TrainOptions& options) {
  OptimizerOptions& optimizer = options.optimizer;
  const bool has_forms =
      optimizer.kind == OptimizerKind::sgd || optimizer.kind == OptimizerKind::lars;
  if (!has_forms || options.own_optimizer || optimizer.momentum_form) return;
  optimizer.momentum_form = options.rules.make(options.rule)->momentum_form();
}

}  // namespace

TrainOptions checked_options(TrainOptions options) {
  if (options.epochs < 1) {
    throw Error(fmt::format("{} epochs: at least 1 is needed", options.epochs));
  }
  if (!(options.learning_rate > 0) || !std::isfinite(options.learning_rate)) {
    throw Error(
        fmt::format("learning rate {}: accepted are values above 0", options.learning_rate));
  }
  require_valid(options.budget);
  if (options.clip_norm && !(*options.clip_norm > 0)) {
    throw Error(
        fmt::format("clipping to norm {}: accepted are values above 0", *options.clip_norm));
  }
  if (options.clip_value && !(*options.clip_value > 0)) {
    throw Error(
        fmt::format("clipping to value {}: accepted are values above 0", *options.clip_value));
  }
  if (options.clip_norm && options.clip_value) {
    throw Error("gradients are clipped by their norm or by value; accepted: one of them");
  }
  for (const ParameterGroup& group : options.groups) {
    if (group.takes) continue;
    throw Error(
        fmt::format("parameter group '{}' has no function that says what it takes; "
                    "accepted: ParameterGroup::takes",
                    group.name));
  }
  choose_momentum_form(options);
  if (options.top_k < 0) {
    throw Error(fmt::format("top {} accuracy: at least 1 is needed (0 is none)", options.top_k));
  }
  if (options.own_optimizer) require_nothing_ignored(options);
  require_reduction(options);
  require_transforms(options.gradient_transforms);
  require_metrics(options.metrics);
  require_known(options.watch, options.metrics);
  require_for_hosts(options);
  if (options.sampler) require_name(options.sampler.name, "sampler");
  if (options.reference_batch_size < 1) {
    throw Error(
        fmt::format("reference batch size {}: at least 1 is needed", options.reference_batch_size));
  }
  if (options.threads < 0) {
    throw Error(fmt::format("{} threads: at least 1 is needed (0 takes all)", options.threads));
  }
  if (options.threads == 0) {
    options.threads = cpus().usable();
  }
  return options;
}

}  // namespace rubato
