// Checks of a whole configuration, in two stages (allowed.hpp): how its options go together, which
// depends on nothing else, and then the files and the CPU that they ask for. What the training
// itself refuses is asked of the parts of a step (StepPart::conflicts), so that users of options
// and of the library read the same sentence; require_consistent() turns a Refused into a message
// that names the option.

#include <algorithm>
#include <string>

#include <rubato/base/error.hpp>
#include <rubato/base/machine.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/loop/libtorch_options.hpp>
#include <rubato/loop/reducer.hpp>
#include <rubato/loop/test_metrics.hpp>
#include <rubato/numbers/rule.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "allowed.hpp"
#include "base/core/throw_error.hpp"
#include "base/machine/instruction_set.hpp"
#include "chosen_parts.hpp"
#include "loop/optim/make_optimizer.hpp"
#include "loop/train/checked_options.hpp"
#include "loop/train/checked_parts.hpp"
#include "loop/train/step/step_part.hpp"
#include "run_option.hpp"
#include "runs/config/engine.hpp"
#include "runs/config/values/data_source.hpp"
#include "runs/config/values/loss_choice.hpp"
#include "runs/config/values/model_choice.hpp"

namespace rubato {

namespace {

// The first stage checks the values of options.

void check_ranges(const RunConfiguration& run) {
  RunConfiguration read;
  read.extensions = run.extensions;
  for (const RunOption& option : run_options()) {
    const auto text = option.text(run);
    if (!text || option.is_parsed) continue;
    try {
      option.set(read, *text);
    } catch (const Error& error) {
      throw_error("--{}: {}", option.name, error.what());
    }
  }
}

void check_momentum(const RunConfiguration& run, const OptimizerOptions& optimizer) {
  if (run.optimizer->own) {
    const auto refuse = [&](std::string_view option) {
      throw_error(
          "--{}: it applies to built-in optimizers only, and {} is not one; accepted: an argument "
          "of its own, if it has one",
          option, run.optimizer.text());
    };
    if (run.momentum) refuse("momentum");
    if (run.nesterov) refuse("nesterov");
    if (run.weight_decay != 0) refuse("weight-decay");
  }
  require_valid(optimizer);
  if (facts_of(optimizer.method).momentum_form && optimizer.momentum == 0) {
    refuse("optimizer " + run.optimizer.text(), "there is no momentum",
           "with --momentum greater than 0");
  }
}

// Checks the schedule with the metric that it watches and the unit that it counts.
void check_schedule(const RunConfiguration& run) {
  const WatchedMetric watched = watched_metric(run);
  try {
    require_rate(*run.schedule->make(watched), run.schedule.text(), run.schedule_unit);
  } catch (const Error& error) {
    throw_error("--schedule: {}", error.what());
  }
}

void check_rule(const RunConfiguration& run) {
  if (run.rule->names().empty()) {
    throw Error(
        "--rule own: the rule is in the program that trained it; accepted: a rule with a name, or "
        "that program, which gives it again");
  }
}

// Asks what the trainer asks; optimizers of the user's own are known to the trainer alone.
void check_step(const RunConfiguration& run, const OptimizerOptions& optimizer) {
  const bool own = run.optimizer->own.has_value();
  const MethodFacts facts = facts_of(optimizer.method);
  const TrainOptions options = train_options(run);
  require_compatible({.options = options,
                      .rule = *options.rule,
                      .follows_sums = own || facts.follows_sums,
                      .squares = !own && facts.squares,
                      .has_momentum = own || has_momentum(optimizer),
                      .moves_momentum = schedule_of(options)->moves_momentum()});
  require_known(options.watch, options);
}

void check_clock(const RunConfiguration& run) {
  if (run.clock == Clock::real) {
    constexpr std::string_view kWhy = "there is no modelled time";
    if (run.hours) refuse("hours", kWhy, "with --clock virtual");
    if (run.money) refuse("money", kWhy, "with --clock virtual");
    if (run.deadline) refuse("deadline", kWhy, "with --clock virtual");
    return;
  }
  const MarketModel& market = run.cluster->market;
  if (const MarketPolicy* const policy = run.market->get(); policy != nullptr) {
    if (policy->needs_on_demand() && market.on_demand_devices == 0) {
      refuse("market " + run.market.text(), "there are no on-demand devices",
             "with --cluster on-demand=N");
    }
    if (policy->needs_deadline() && !run.deadline) {
      refuse("market " + run.market.text(), "nothing has to end in time", "with --deadline");
    }
  } else if (run.deadline) {
    refuse("deadline", "nobody decides by it", "with --market greedy, uniform or lifetimes");
  } else if (market.on_demand_devices > 0) {
    refuse("cluster " + run.cluster.text(), "nobody takes on-demand devices", "with --market");
  }
  if (run.money && !run.price->costs() && market.on_demand_price == 0 &&
      market.move.egress_price == 0) {
    refuse("money", "nothing costs anything",
           "with --price, or --cluster with on-demand-price or egress");
  }
  constexpr std::string_view kFaults = "in modelled time cores are lost when devices leave";
  constexpr std::string_view kAccepted =
      "an availability as --trace (docs/traces.md), or --clock real";
  if (!run.fault.empty()) refuse("fault", kFaults, kAccepted);
  if (!run.faults.empty()) refuse("faults", kFaults, kAccepted);
}

void check_batch(const RunConfiguration& run) {
  bool needs_seconds = false;
  try {
    const auto policy = batch_policy_of(run);
    needs_seconds = policy != nullptr && policy->needs_seconds();
  } catch (const Error& error) {
    throw_error("--batch {}: {}", run.batch.text(), error.what());
  }
  if (!needs_seconds || run.clock == Clock::modelled) return;
  refuse("batch " + run.batch.text(), "the result would depend on the speed of this machine",
         "with --clock virtual");
}

void check_metrics(const RunConfiguration& run) {
  if (run.top_k == 0 || run.metric->built_in.top_k == 0) return;
  refuse("top-k", "--metric has a top-k, too", "one of them");
}

// Refuses everything that only a classifier has.
void check_classes(const RunConfiguration& run) {
  if (run.model->classifies) return;
  const auto refuse_accuracy = [&](std::string_view option) {
    refuse(option, run.model.text() + " has no accuracy",
           "with a model that tells classes apart, such as softmax");
  };
  if (run.target_accuracy) refuse_accuracy("target-accuracy");
  if (run.top_k > 0) refuse_accuracy("top-k");
  if (run.metric->built_in != TestMetrics()) refuse_accuracy("metric");
  if (watched_metric(run) == Metric::test_accuracy) refuse_accuracy("watch test-accuracy");
}

void check_loss(const RunConfiguration& run) {
  const Parsed<LossChoice> loss = loss_of(run);
  if (run.label_smoothing == 0 || loss->of_classes) return;
  refuse("label-smoothing", loss.text() + " has no classes to spread a target over",
         "with --loss cross-entropy or nll");
}

void check_reproducible(const RunConfiguration& run) {
  if (!run.exact) return;
  if (!run.reduce->own) require_reproducible(run.reduce.text());
  if (run.buffers == BufferUse::local) {
    refuse("buffers local", "the result would depend on the number of cores", "with --exact=false");
  }
}

void check_values(const RunConfiguration& run) {
  const OptimizerOptions optimizer = optimizer_options(run);
  check_momentum(run, optimizer);
  if (!run.weights.empty() && run.initializer != RunConfiguration().initializer) {
    refuse("init", "the initial weights are those of --weights", "one or the other");
  }
  check_schedule(run);
  check_clock(run);
  check_batch(run);
  check_rule(run);
  check_step(run, optimizer);
  static_cast<void>(engine_of(run));
  check_classes(run);
  check_metrics(run);
  check_loss(run);
  check_reproducible(run);
}

// The second stage checks files and the CPU.

void check_files(const RunConfiguration& run) {
  constexpr std::string_view kScript = "a file that torch.jit.save() wrote";
  if (run.model->classifies) require_data_files(*run.data);
  if (const auto& file = run.model->script) require_option_file("model", *file, kScript);
  if (!run.weights.empty()) static_cast<void>(weights_file(run.weights));
  if (const auto& file = run.loss->script) require_option_file("loss", *file, kScript);
}

void check_kernels(const RunConfiguration& run) {
  if (run.kernels != Kernels::portable) return;
  if (!has_fma(cpu_instruction_set())) {
    throw Error(
        "--kernels portable: this CPU has no AVX2 and FMA; accepted here: --kernels native");
  }
  if (run.precision->precision == Precision::bf16) {
    refuse("kernels portable", "bfloat16 is computed differently on different CPUs",
           "with --precision full or fp16");
  }
}

}  // namespace

void refuse(std::string_view option, std::string_view why, std::string_view accepted) {
  throw_error("--{}: {}; accepted: {}", option, why, accepted);
}

void require_consistent(const RunConfiguration& run) {
  try {
    check_values(run);
  } catch (const Refused& refused) {
    std::string option = refused.choice();
    std::ranges::replace(option, '_', '-');
    refuse(option, refused.why(), refused.accepted());
  }
  check_files(run);
  check_kernels(run);
}

void require_valid(const RunConfiguration& run) {
  check_ranges(run);
  require_consistent(run);
}

}  // namespace rubato
