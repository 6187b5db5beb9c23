#include "app/train_checks.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <rubato/core/choice.hpp>
#include <rubato/core/error.hpp>
#include <rubato/core/spec.hpp>
#include <rubato/recipe/checkpoint_interval.hpp>
#include <rubato/scaling/lr_schedule.hpp>

#include "app/idle_options.hpp"
#include "config/engine.hpp"
#include "config/run_option.hpp"
#include "core/split.hpp"

namespace rubato::app {

namespace {

// Whether there is something among the parts of a schedule that counts.
bool counts(std::string_view schedule) {
  for (const std::string_view part : split_at(schedule, '+')) {
    const std::string name = Spec(part).name();
    if (name != "constant" && name != "plateau") return true;
  }
  return false;
}

void check_idle(const TrainArguments& arguments, const CommandLine& line) {
  const RunConfiguration& run = arguments.run;
  const OptimizerKind optimizer = optimizer_options(run).kind;
  const std::string rule = Spec(run.rule).name();
  // Groups of parameters have AdaScale gains of their own, and layer-wise rates pass over them.
  const bool groups_matter = run.weight_decay > 0 || optimizer == OptimizerKind::lars ||
                             rule == "lbsgd" || rule == "adascale" || run.log_noise;
  const bool watched =
      run.patience > 0 || run.keep_best || make_lr_schedule(run.schedule)->watches();
  const std::string no_momentum = fmt::format("{} has none", choice_name(kOptimizers, optimizer));
  const std::string no_unit = fmt::format("{} counts nothing", run.schedule);
  const std::string not_watched =
      fmt::format("nobody goes by {}", choice_name(kMetrics, run.watch));
  const bool real = run.clock == Clock::real;
  constexpr std::string_view kNoClock = "there is no modelled time";
  constexpr std::string_view kClock = "with --clock virtual";
  require_none_idle(
      line,
      std::array<IdleOption, 15>{
          {{"data", !model_entry(run.model).classifies, run.model + " needs none",
            "with a model that tells images apart, such as softmax"},
           {"momentum", !has_momentum(optimizer), no_momentum, "with sgd, lars or rmsprop"},
           {"no-decay", !groups_matter, "nothing decays, and no rate is layer-wise",
            "with --weight-decay, lars, lbsgd or adascale"},
           {"lookahead-alpha", run.lookahead == 0, "there is no Lookahead", "with --lookahead K"},
           {"lookahead-start", run.lookahead == 0, "there is no Lookahead", "with --lookahead K"},
           {"schedule-unit", !counts(run.schedule), no_unit, "with another --schedule"},
           {"watch", !watched, not_watched, "with --patience, --keep-best or the schedule plateau"},
           {"min-delta", run.patience == 0, "nothing stops early", "with --patience N"},
           {"monitor-every", run.monitor.empty(), "nothing is monitored", "with --monitor PATTERN"},
           {"histograms", !run.tensorboard, "nothing is written for TensorBoard",
            "with --tensorboard"},
           {"histograms-every", run.histograms.empty(), "there are no histograms",
            "with --histograms PATTERN"},
           {"cluster", real, kNoClock, kClock},
           {"price", real, kNoClock, kClock},
           {"on-idle", real, kNoClock, kClock},
           {"log-steps", arguments.quiet, "--quiet prints none", "one of them"}}});
}

// What `rubato verify` would neither do nor show: stop early, and write anything. The noise scale
// is among what it compares.
std::vector<std::string> options_of_train_alone() {
  std::vector<std::string> names{"patience", "min-delta", "out", "quiet"};
  for (const RunOption& option : run_options()) {
    if (option.affects == Affects::output && option.name != "log-noise") {
      names.push_back(option.name);
    }
  }
  return names;
}

// What no step of one core that is measured depends on.
std::vector<std::string> options_without_a_part_in_calibration() {
  std::vector<std::string> names{"schedule",  "schedule-unit", "epochs",  "iterations", "samples",
                                 "hours",     "money",         "threads", "watch",      "patience",
                                 "min-delta", "out",           "quiet"};
  for (const RunOption& option : run_options()) {
    const bool elastic = option.group == "Elasticity" && option.name != "minibatch";
    const bool modelled = option.group == "Modelled time";
    const bool planned = option.group == "Checkpoints and faults";
    const bool written = option.affects == Affects::output && option.name != "log-noise";
    if (elastic || modelled || planned || written) names.push_back(option.name);
  }
  return names;
}

void refuse_all(const CommandLine& line, const std::vector<std::string>& names,
                std::string_view why) {
  for (const std::string& name : names) {
    const IdleOption option{
        .option = name, .idle = true, .why = why, .accepted = "with `rubato train`"};
    require_none_idle(line, {&option, 1});
  }
}

// What only `rubato train` does.
void check_command(const TrainArguments& arguments, const CommandLine& line, TrainCommand command) {
  if (command == TrainCommand::train) {
    const IdleOption keep{.option = "keep",
                          .idle = !parse_checkpoint_interval(arguments.run.checkpoint_every),
                          .why = "without --checkpoint-every there are none",
                          .accepted = "with an interval, such as 100steps"};
    require_none_idle(line, {&keep, 1});
    return;
  }
  if (command == TrainCommand::verify) {
    refuse_all(line, options_of_train_alone(),
               "`rubato verify` keeps nothing and shows nothing but its table");
    return;
  }
  refuse_all(line, options_without_a_part_in_calibration(),
             "`rubato calibrate` measures steps of one core, which do not depend on it");
}

void check_folder(const TrainArguments& arguments) {
  if (arguments.hosts.elastic() && !arguments.out && !arguments.resume) {
    throw Error(
        "--min-hosts: any host may come to write the run folder, which has to have a name; "
        "accepted: with --out FOLDER or --resume RUN");
  }
  require_one_folder(arguments);
  // A host may come to a run that has begun.
  if (arguments.out && !arguments.hosts.elastic()) check_run_folder(*arguments.out);
}

}  // namespace

void check_together(const TrainArguments& arguments, const CommandLine& line,
                    TrainCommand command) {
  check_command(arguments, line, command);
  check_idle(arguments, line);
  require_trace_end(line, arguments.run);
  require_consistent(arguments.run);
  check_folder(arguments);
}

}  // namespace rubato::app
