// Options and objective are checked before the first step; what rules and schedules answer is
// checked at every step, because users can write them. checked_options() also completes options
// that depend on others, the rule's form of momentum and the number of threads, so it has to run
// before an optimizer is made or a configuration is written. The layout of the objective is checked
// most strictly: the engine treats the parameters as one array, and relies on each tensor beginning
// where the one before it ends. require_metrics() and require_known() of the same header are in
// observers.cpp.

#include "checked_options.hpp"

#include <cmath>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/machine.hpp>
#include <rubato/loop/reducer.hpp>

#include "base/core/throw_error.hpp"
#include "loop/train/step/step_part.hpp"

namespace rubato {

namespace {

void require_once(const std::vector<NamedArray>& arrays, std::string_view what) {
  std::set<std::string_view> names;
  for (const NamedArray& array : arrays) {
    if (names.insert(array.name).second) continue;
    throw_error("the objective has two {} called '{}'; accepted: names that differ", what,
                array.name);
  }
}

// Throws Error unless each array in training lies in the flat parameters, beginning at the end of
// the one before it.
template <class T>
void require_laid_out(ObjectiveOf<T>& objective) {
  const std::span<T> flat = objective.flat_parameters();
  std::size_t begin = 0;
  for (const TrainedArray& of : objective.trained()) {
    const NamedArray& array = of.array;
    if (array.type != objective.type()) {
      throw_error("the objective trains '{}' of type {} among {}; accepted: {}", array.name,
                  name_of(array.type), name_of(objective.type()), name_of(objective.type()));
    }
    const bool fits = begin <= of.end && of.end <= flat.size() && array.size() <= of.end - begin;
    if (!fits || (array.size() > 0 && array.data != flat.data() + begin)) {
      throw_error(
          "the objective trains '{}', {} values that end at {} of {}, which is not where its data "
          "are; accepted: in flat_parameters(), each array from the end of the one before it",
          array.name, array.size(), of.end, flat.size());
    }
    begin = of.end;
  }
  if (begin != flat.size() || flat.empty()) {
    throw_error(
        "the objective has {} parameters, and its arrays in training end at {}; accepted: at least "
        "one, and arrays that cover all",
        flat.size(), begin);
  }
}

template <class T>
void require_typed(Objective& objective) {
  auto* const typed = dynamic_cast<ObjectiveOf<T>*>(&objective);
  if (typed == nullptr) {
    throw Error(
        "an objective that derives from Objective itself; accepted: one that derives from "
        "ObjectiveOf");
  }
  require_laid_out(*typed);
}

}  // namespace

std::unique_ptr<Objective> checked_objective(std::unique_ptr<Objective> objective) {
  if (objective == nullptr) throw Error("a trainer needs an objective; accepted: any but null");
  switch (objective->type()) {
    case ElementType::f64:
      require_typed<double>(*objective);
      break;
    case ElementType::f32:
      require_typed<float>(*objective);
      break;
    default:
      throw_error("the objective trains parameters of type {}; accepted: F32, F64",
                  name_of(objective->type()));
  }
  require_once(objective->parameters(), "parameters");
  require_once(objective->buffers(), "buffers");
  return objective;
}

namespace {

bool is_applicable(double number) {
  return std::isfinite(number) && number >= 0;
}

void require_number(double number, std::string_view what, const RatesContext& context) {
  if (is_applicable(number)) return;
  throw_error("rule {} gave the {} {} at {}; accepted: finite numbers of at least 0", context.rule,
              what, in_words(number), context.place);
}

void require_factors(std::span<const double> factors, std::size_t count, std::string_view of,
                     const RatesContext& context) {
  if (!factors.empty() && factors.size() != count) {
    throw_error("rule {} gave {} factor{} for {} {}{} at {}; accepted: {} or none", context.rule,
                factors.size(), factors.size() == 1 ? "" : "s", count, of, count == 1 ? "" : "s",
                context.place, count);
  }
  for (const double factor : factors) {
    require_number(factor, fmt::format("factor of a {}", of), context);
  }
}

bool is_below_one(const std::optional<double>& number) {
  return !number || (*number >= 0 && *number < 1);
}

void require_below_one(const std::optional<double>& answer, std::string_view what,
                       const RatesContext& context) {
  if (is_below_one(answer)) return;
  throw_error("rule {} gave the {} {} at {}; accepted: from 0 to below 1", context.rule, what,
              in_words(*answer), context.place);
}

void require_answerable(const OptimizerAnswer& answer, const RatesContext& context) {
  const OptimizerNumbers& optimizer = context.optimizer;
  const auto require_there = [&](bool answered, bool there, std::string_view what) {
    if (!answered || there) return;
    throw_error("rule {} gave {} at {}, which the optimizer does not have; accepted: none",
                context.rule, what, context.place);
  };
  require_there(answer.momentum.has_value(), optimizer.momentum.has_value(), "a momentum");
  require_there(answer.beta1.has_value(), optimizer.beta1.has_value(), "a beta1");
  require_there(answer.beta2.has_value(), optimizer.beta2.has_value(), "a beta2");
  require_there(answer.epsilon.has_value(), optimizer.epsilon.has_value(), "an epsilon");
  require_there(answer.mean_factor.has_value(), optimizer.has_mean, "a factor of the mean");
  require_there(answer.variance_factor || answer.forget_squares, optimizer.has_squares,
                "a change of the mean squares");
  require_below_one(answer.momentum, "momentum", context);
  require_below_one(answer.beta1, "beta1", context);
  require_below_one(answer.beta2, "beta2", context);
  if (answer.epsilon) require_number(*answer.epsilon, "epsilon", context);
  if (answer.mean_factor) require_number(*answer.mean_factor, "factor of the mean", context);
  if (answer.variance_factor) {
    require_number(*answer.variance_factor, "factor of the variance", context);
  }
}

}  // namespace

void require_applicable(const Rates& rates, const RatesContext& context) {
  require_number(rates.learning_rate, "learning rate", context);
  require_number(rates.update_rate, "rate of the update", context);
  require_number(rates.weight_decay_factor, "factor on the weight decay", context);
  require_number(rates.gain, "gain", context);
  require_factors(rates.group_factors, context.groups, "parameter group", context);
  require_factors(rates.layer_factors, context.layers, "parameter tensor", context);
  require_answerable(rates.optimizer, context);
}

void require_applicable_rate(double rate) {
  if (is_applicable(rate)) return;
  throw_error("learning rate {}: accepted are finite numbers of at least 0", in_words(rate));
}

void require_applicable(double schedule_factor, const std::optional<double>& momentum,
                        std::string_view schedule, std::string_view place) {
  if (!is_applicable(schedule_factor)) {
    throw_error("schedule {} gave the factor {} at {}; accepted: finite numbers of at least 0",
                schedule, in_words(schedule_factor), place);
  }
  if (is_below_one(momentum)) return;
  throw_error("schedule {} gave the momentum {} at {}; accepted: from 0 to below 1", schedule,
              in_words(*momentum), place);
}

namespace {

// The user makes an own optimizer completely, so options that it would not see are refused.
void require_nothing_ignored(const TrainOptions& options) {
  const auto refuse = [](const std::string& what) {
    throw_error(
        "{}, which own_optimizer does not see; accepted: none; set the options of the optimizer "
        "that it makes",
        what);
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
    throw_error("two gradient transforms are called {}; accepted: different names", transform.name);
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
    throw_error("reducer {} and own_reducer {}; accepted: one of them", options.reduce, own.name);
  }
}

void require_for_hosts(const TrainOptions& options) {
  if (!are_several(options.hosts.get())) return;
  const auto refuse = [&](std::string_view what) {
    throw_error("{} on several hosts; accepted: on one host", what);
  };
  if (!options.faults.planned.empty() || options.faults.rate > 0) refuse("cores that die");
  if (options.log_minibatches) refuse("a record of every minibatch");
}

// Sets the rule's form of momentum if the user chose none and the optimizer has a choice.
void choose_momentum_form(TrainOptions& options) {
  if (options.own_optimizer) return;
  std::visit(
      [&](auto& method) {
        if constexpr (requires { method.momentum_form; }) {
          if (method.momentum_form) return;
          method.momentum_form = options.rule->momentum_form();
        }
      },
      options.optimizer.method);
}

}  // namespace

TrainOptions checked_options(TrainOptions options) {
  if (options.epochs < 1) throw_error("{} epochs: at least 1 is needed", options.epochs);
  if (!(options.learning_rate > 0) || !std::isfinite(options.learning_rate)) {
    throw_error("learning rate {}: accepted are values above 0", options.learning_rate);
  }
  require_valid(options.budget);
  for (const ParameterGroup& group : options.groups) {
    if (group.takes) continue;
    throw_error(
        "parameter group '{}' has no function that says what it takes; accepted: "
        "ParameterGroup::takes",
        group.name);
  }
  choose_momentum_form(options);
  for (const StepPart& part : step_parts()) {
    if (part.check != nullptr) part.check(options);
  }
  if (options.top_k < 0) {
    throw_error("top {} accuracy: at least 1 is needed (0 is none)", options.top_k);
  }
  if (options.digest_every < 0) {
    throw_error("{} steps between two digests: at least 1 is needed (0 is never)",
                options.digest_every);
  }
  for (const ParameterGroup& group : options.groups) {
    if (!options.adjustments.memories.momentum || !group.options.momentum) continue;
    throw_error(
        "parameter group '{}' has a momentum of its own; accepted: none, as momentum counts "
        "samples",
        group.name);
  }
  if (options.own_optimizer) require_nothing_ignored(options);
  require_reduction(options);
  require_transforms(options.gradient_transforms);
  require_metrics(options.metrics);
  require_known(options.watch, options);
  require_for_hosts(options);
  if (options.sampler) require_name(options.sampler.name, "sampler");
  if (options.reference_batch_size < 1) {
    throw_error("reference batch size {}: at least 1 is needed", options.reference_batch_size);
  }
  if (options.threads < 0) {
    throw_error("{} threads: at least 1 is needed (0 takes all)", options.threads);
  }
  if (options.threads == 0) {
    options.threads = cpus().usable();
  }
  return options;
}

}  // namespace rubato
