#include "app/train_checks.hpp"

#include <array>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include <rubato/core/choice.hpp>
#include <rubato/core/error.hpp>
#include <rubato/core/spec.hpp>
#include <rubato/machine/kernels.hpp>
#include <rubato/recipe/checkpoint_interval.hpp>
#include <rubato/runtime/reducer.hpp>
#include <rubato/scaling/lr_schedule.hpp>
#include <rubato/scaling/rule_registry.hpp>

#include "app/idle_options.hpp"
#include "app/run_folder.hpp"

namespace rubato::app {

namespace {

// Whether there is something among the parts of a schedule that counts.
bool counts(std::string_view schedule) {
  std::istringstream parts{std::string(schedule)};
  for (std::string part; std::getline(parts, part, '+');) {
    const std::string name = Spec(part).name();
    if (name != "constant" && name != "plateau") return true;
  }
  return false;
}

void check_idle(const TrainCommandOptions& options, const CommandLine& line) {
  const OptimizerKind optimizer = optimizer_options(options).kind;
  const std::string rule = Spec(options.rule).name();
  // Groups of parameters have AdaScale gains of their own, and layer-wise rates pass over them.
  const bool groups_matter = options.weight_decay > 0 || optimizer == OptimizerKind::lars ||
                             rule == "lbsgd" || rule == "adascale" || options.log_noise;
  const bool watched =
      options.patience > 0 || options.keep_best || make_lr_schedule(options.schedule)->watches();
  const std::string no_momentum = fmt::format("{} has none", choice_name(kOptimizers, optimizer));
  const std::string no_unit = fmt::format("{} counts nothing", options.schedule);
  const std::string not_watched = fmt::format("nobody goes by {}", options.watch);
  require_none_idle(
      line,
      std::array<IdleOption, 9>{
          {{"momentum", !has_momentum(optimizer), no_momentum, "with sgd, lars or rmsprop"},
           {"no-decay", !groups_matter, "nothing decays, and no rate is layer-wise",
            "with --weight-decay, lars, lbsgd or adascale"},
           {"lookahead-alpha", options.lookahead == 0, "there is no Lookahead",
            "with --lookahead K"},
           {"lookahead-start", options.lookahead == 0, "there is no Lookahead",
            "with --lookahead K"},
           {"schedule-unit", !counts(options.schedule), no_unit, "with another --schedule"},
           {"watch", !watched, not_watched, "with --patience, --keep-best or the schedule plateau"},
           {"min-delta", options.patience == 0, "nothing stops early", "with --patience N"},
           {"monitor-every", options.monitor.empty(), "nothing is monitored",
            "with --monitor PATTERN"},
           {"log-steps", options.quiet, "--quiet prints none", "one of them"}}});
}

// What only `rubato train` does.
void check_command(const TrainCommandOptions& options, const CommandLine& line,
                   TrainCommand command) {
  if (command == TrainCommand::train) {
    const IdleOption keep{.option = "keep",
                          .idle = !parse_checkpoint_interval(options.checkpoint_every),
                          .why = "without --checkpoint-every there are none",
                          .accepted = "with an interval, such as 100steps"};
    require_none_idle(line, {&keep, 1});
    return;
  }
  for (const std::string_view name :
       {"patience", "min-delta", "keep-best", "top-k", "target-accuracy", "checkpoint-every",
        "keep", "out", "log-steps", "log-minibatches", "monitor", "monitor-every", "quiet"}) {
    const IdleOption option{.option = name,
                            .idle = true,
                            .why = "`rubato verify` keeps nothing and shows nothing but its table",
                            .accepted = "with `rubato train`"};
    require_none_idle(line, {&option, 1});
  }
}

// With what it goes by and what it counts.
void check_schedule(const TrainCommandOptions& options) {
  try {
    const auto schedule =
        make_lr_schedule(options.schedule, parse_choice("metric", options.watch, kMetrics));
    require_rate(*schedule, options.schedule,
                 parse_choice("unit", options.schedule_unit, kScheduleUnits));
  } catch (const Error& error) {
    throw Error(fmt::format("--schedule: {}", error.what()));
  }
}

void check_contradictions(const TrainCommandOptions& options) {
  const OptimizerOptions optimizer = optimizer_options(options);
  if (options.nesterov && optimizer.kind == OptimizerKind::sgd && optimizer.momentum == 0) {
    throw Error("--nesterov: there is no momentum; accepted: with --momentum greater than 0");
  }
  require_valid(optimizer);
  if (optimizer.momentum_form && optimizer.momentum == 0) {
    throw Error(fmt::format(
        "--optimizer {}: there is no momentum; accepted: with --momentum greater than 0",
        options.optimizer));
  }
  if (options.clip_norm && options.clip_value) {
    throw Error(
        "--clip-value: gradients are clipped by their norm already; accepted: with "
        "--clip-norm or --clip-value, not both");
  }
  check_schedule(options);
  if (make_rule(options.rule)->reduction() == GradientReduction::sum &&
      optimizer.kind != OptimizerKind::sgd && optimizer.kind != OptimizerKind::lars) {
    throw Error(
        fmt::format("--rule {} sums gradients, which {} cannot follow; accepted: with sgd "
                    "or lars",
                    options.rule, choice_name(kOptimizers, optimizer.kind)));
  }
  if (const auto folder = mnist_folder(options)) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(*folder, ignored)) {
      throw Error(
          fmt::format("--data: no such folder as '{}'; accepted: the folder that holds the "
                      "IDX files (train-images-idx3-ubyte[.gz] and so on)",
                      folder->string()));
    }
  }
  if (options.kernels == "portable") {
    if (cpu_instruction_set() < InstructionSet::avx2) {
      throw Error(
          "--kernels portable: this CPU has no AVX2 and FMA; accepted here: --kernels native");
    }
    if (options.precision == "bf16") {
      throw Error(
          "--kernels portable: bfloat16 is computed otherwise on every CPU; accepted: with "
          "--precision full or fp16");
    }
  }
  if (options.exact) require_exact(options.reduce);
  if (options.resume && options.out) {
    throw Error("--out: a run that goes on stays in its folder; accepted: --resume alone");
  }
  if (options.out) check_run_folder(*options.out);
}

}  // namespace

void check_together(const TrainCommandOptions& options, const CommandLine& line,
                    TrainCommand command) {
  check_command(options, line, command);
  check_idle(options, line);
  require_trace_end(line, options.elasticity);
  check_contradictions(options);
}

}  // namespace rubato::app
