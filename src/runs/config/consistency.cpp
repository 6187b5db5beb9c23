#include <variant>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/machine.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/loop/reducer.hpp>
#include <rubato/loop/training_options.hpp>
#include <rubato/numbers/rule.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "allowed.hpp"
#include "base/machine/instruction_set.hpp"
#include "chosen_parts.hpp"
#include "run_option.hpp"
#include "runs/config/values/data_source.hpp"
#include "runs/config/values/model_choice.hpp"

namespace rubato {

namespace {

// The first stage checks the values of options.

void check_ranges(const RunConfiguration& configuration) {
  RunConfiguration read;
  read.extensions = configuration.extensions;
  for (const RunOption& option : run_options()) {
    const auto text = option.text(configuration);
    if (!text) continue;
    try {
      option.set(read, *text);
    } catch (const Error& error) {
      throw Error(fmt::format("--{}: {}", option.name, error.what()));
    }
  }
}

void check_momentum(const RunConfiguration& configuration, const OptimizerOptions& optimizer) {
  if (own_optimizer(configuration)) {
    const auto refuse = [&](std::string_view option) {
      throw Error(
          fmt::format("--{}: it applies to built-in optimizers only, and {} is not one; accepted: "
                      "an argument of its own, if it has one",
                      option, configuration.optimizer));
    };
    if (configuration.momentum) refuse("momentum");
    if (configuration.nesterov) refuse("nesterov");
    if (configuration.weight_decay != 0) refuse("weight-decay");
  }
  const bool is_sgd = std::holds_alternative<SgdOptions>(optimizer.method);
  if (configuration.nesterov && is_sgd && optimizer.momentum == 0) {
    refuse("nesterov", "there is no momentum", "with --momentum greater than 0");
  }
  require_valid(optimizer);
  if (configuration.nesterov && !is_sgd) {
    throw Error(fmt::format("Nesterov momentum applies to sgd only, not to {}",
                            optimizer_name(optimizer.method)));
  }
  const bool has_form = method_options<SgdOptions>(optimizer.method).momentum_form ||
                        method_options<LarsOptions>(optimizer.method).momentum_form;
  if (has_form && optimizer.momentum == 0) {
    refuse("optimizer " + configuration.optimizer, "there is no momentum",
           "with --momentum greater than 0");
  }
}

// Checks the schedule with the metric that it watches and the unit that it counts.
void check_schedule(const RunConfiguration& configuration) {
  const WatchedMetric watched = watched_metric(configuration);
  try {
    const auto schedule =
        make_lr_schedule(configuration.schedule, watched, configuration.extensions.schedules);
    require_rate(*schedule, configuration.schedule, configuration.schedule_unit);
  } catch (const Error& error) {
    throw Error(fmt::format("--schedule: {}", error.what()));
  }
}

void check_rule(const RunConfiguration& configuration, const OptimizerMethod& method) {
  if (is_elsewhere(configuration.rule, configuration.extensions)) {
    throw Error(
        "--rule own: the rule is in the program that trained it; accepted: a rule with a name, or "
        "that program, which gives it again");
  }
  const auto rule = configuration.extensions.rules.make(configuration.rule);
  if (rule->reduction() != GradientReduction::sum || own_optimizer(configuration)) return;
  if (is_sgd_or_lars(method)) return;
  refuse("rule " + configuration.rule,
         fmt::format("it sums gradients, which {} cannot follow", optimizer_name(method)),
         "with sgd or lars");
}

void check_clock(const RunConfiguration& configuration) {
  if (configuration.clock == Clock::real) {
    constexpr std::string_view kWhy = "there is no modelled time";
    if (configuration.hours) refuse("hours", kWhy, "with --clock virtual");
    if (configuration.money) refuse("money", kWhy, "with --clock virtual");
    return;
  }
  if (configuration.money && configuration.price == 0) {
    refuse("money", "nothing costs anything", "with --price");
  }
  constexpr std::string_view kFaults = "in modelled time cores are lost when devices leave";
  constexpr std::string_view kAccepted =
      "an availability as --trace (docs/traces.md), or --clock real";
  if (!configuration.fault.empty()) refuse("fault", kFaults, kAccepted);
  if (!configuration.faults.empty()) refuse("faults", kFaults, kAccepted);
}

void check_batch(const RunConfiguration& configuration) {
  bool needs_seconds = false;
  try {
    const auto policy = batch_policy_of(configuration);
    needs_seconds = policy != nullptr && policy->needs_seconds();
  } catch (const Error& error) {
    throw Error(fmt::format("--batch {}: {}", configuration.batch, error.what()));
  }
  if (!needs_seconds || configuration.clock == Clock::modelled) return;
  refuse("batch " + configuration.batch, "the result would depend on the speed of this machine",
         "with --clock virtual");
}

void check_metrics(const RunConfiguration& configuration) {
  if (configuration.top_k == 0 || parse_test_metrics(built_in_metrics(configuration)).top_k == 0) {
    return;
  }
  refuse("top-k", "--metric has a top-k, too", "one of them");
}

// Refuses everything that only a classifier has.
void check_classes(const RunConfiguration& configuration) {
  if (configuration.model->classifies) return;
  const auto refuse_accuracy = [&](std::string_view option) {
    refuse(option, configuration.model.text() + " has no accuracy",
           "with a model that tells classes apart, such as softmax");
  };
  if (configuration.target_accuracy) refuse_accuracy("target-accuracy");
  if (configuration.top_k > 0) refuse_accuracy("top-k");
  if (!built_in_metrics(configuration).empty()) refuse_accuracy("metric");
  if (watched_metric(configuration) == Metric::test_accuracy)
    refuse_accuracy("watch test-accuracy");
}

void check_loss(const RunConfiguration& configuration) {
  const Parsed<LossChoice> loss = loss_of(configuration);
  if (configuration.label_smoothing == 0 || loss->of_classes) return;
  refuse("label-smoothing", loss.text() + " has no classes to spread a target over",
         "with --loss cross-entropy or nll");
}

void check_reproducible(const RunConfiguration& configuration) {
  if (!configuration.exact) return;
  if (const auto own = own_reducer(configuration); !own) {
    require_reproducible(configuration.reduce);
  } else if (!own->reproducible) {
    refuse("reduce " + configuration.reduce,
           "it does not promise the same bits for every number of threads and cores",
           "with --exact=false");
  }
  if (configuration.buffers == BufferUse::local) {
    refuse("buffers local", "the result would depend on the number of cores", "with --exact=false");
  }
}

void check_values(const RunConfiguration& configuration) {
  const OptimizerOptions optimizer = optimizer_options(configuration);
  check_momentum(configuration, optimizer);
  if (configuration.clip_norm && configuration.clip_value) {
    refuse("clip-value", "gradients are clipped by their norm already",
           "with --clip-norm or --clip-value, not both");
  }
  if (!configuration.weights.empty() &&
      configuration.initializer != RunConfiguration().initializer) {
    refuse("init", "the initial weights are those of --weights", "one or the other");
  }
  check_schedule(configuration);
  check_clock(configuration);
  check_batch(configuration);
  check_rule(configuration, optimizer.method);
  static_cast<void>(engine_of(configuration));
  check_classes(configuration);
  check_metrics(configuration);
  check_loss(configuration);
  check_reproducible(configuration);
}

// The second stage checks files and the CPU.

void check_files(const RunConfiguration& configuration) {
  constexpr std::string_view kScript = "a file that torch.jit.save() wrote";
  if (configuration.model->classifies) require_data_files(*configuration.data);
  if (const auto& file = configuration.model->script) require_option_file("model", *file, kScript);
  if (!configuration.weights.empty()) static_cast<void>(weights_file(configuration.weights));
  if (const auto& file = configuration.loss->script) require_option_file("loss", *file, kScript);
}

void check_kernels(const RunConfiguration& configuration) {
  if (configuration.kernels != Kernels::portable) return;
  if (!has_fma(cpu_instruction_set())) {
    throw Error(
        "--kernels portable: this CPU has no AVX2 and FMA; accepted here: --kernels native");
  }
  if (configuration.precision->precision == Precision::bf16) {
    refuse("kernels portable", "bfloat16 is computed differently on different CPUs",
           "with --precision full or fp16");
  }
}

}  // namespace

OptimizerOptions optimizer_options(const RunConfiguration& configuration) {
  constexpr double kUsualMomentum = 0.5;
  if (own_optimizer(configuration)) return {};
  OptimizerOptions optimizer = parse_optimizer(
      configuration.optimizer, {.method = SgdOptions{.nesterov = configuration.nesterov},
                                .weight_decay = configuration.weight_decay});
  optimizer.momentum =
      configuration.momentum.value_or(is_sgd_or_lars(optimizer.method) ? kUsualMomentum : 0);
  return optimizer;
}

TestMetrics test_metrics_of(const RunConfiguration& configuration) {
  TestMetrics metrics = parse_test_metrics(built_in_metrics(configuration));
  if (configuration.top_k > 0) metrics.top_k = configuration.top_k;
  return metrics;
}

Budget budget_of(const RunConfiguration& configuration) {
  return {.iterations = configuration.iterations,
          .samples = configuration.samples,
          .hours = configuration.hours,
          .money = configuration.money};
}

void refuse(std::string_view option, std::string_view why, std::string_view accepted) {
  throw Error(fmt::format("--{}: {}; accepted: {}", option, why, accepted));
}

void require_consistent(const RunConfiguration& configuration) {
  check_values(configuration);
  check_files(configuration);
  check_kernels(configuration);
}

void require_valid(const RunConfiguration& configuration) {
  check_ranges(configuration);
  require_consistent(configuration);
}

}  // namespace rubato
