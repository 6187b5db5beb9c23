// Every option of a run takes a list of values, and all combinations are simulated by
// simulate_training(), after all of them have been checked. With --regret, runs that differ in
// nothing but --market form a group; simulate_optimum() searches for the cheapest schedule with
// hindsight in each group (docs/adr/0080-offline-optimum.md), and that optimum becomes a further
// row. With --mtbf, the command instead searches for the best interval between checkpoints in each
// combination (failures.hpp). LoadedSteps reads each trace once, however many runs use it. The
// columns for money, regret, traffic between hosts and rare kinds of time appear only if some run
// has a value there.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/availability.hpp>
#include <rubato/steps/random.hpp>

#include "base/core/of_part.hpp"
#include "base/core/seconds.hpp"
#include "base/core/text/json.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "clients/app/commands.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/number_text.hpp"
#include "clients/app/line/output.hpp"
#include "clients/app/line/run_options_line.hpp"
#include "counted_progress.hpp"
#include "failures.hpp"
#include "forecasts.hpp"
#include "loop/train/record_schemas.hpp"
#include "runs/config/configuration_file.hpp"
#include "runs/config/plugin.hpp"
#include "runs/config/run_option.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/experiment/design/value_list.hpp"
#include "runs/report/report_schemas.hpp"
#include "runs/run/workload/run_steps.hpp"
#include "steps/sim/optimum.hpp"
#include "trace_views.hpp"

namespace rubato::app {

namespace {

std::string cores_of_step(const SimulatedRun& run) {
  const SimulatedTraining& training = run.training;
  return training.fewest_cores == training.most_cores
             ? fmt::to_string(training.most_cores)
             : fmt::format("{} to {}", training.fewest_cores, training.most_cores);
}

std::string regret_note(std::span<const SimulatedRun> runs) {
  const auto any = [&](auto is) {
    return std::ranges::any_of(
        runs, [&](const SimulatedRun& run) { return run.regret && is(*run.regret); });
  };
  std::string note;
  if (any([](const Regret& of) { return !of.optimum; })) {
    note += "\nNo schedule was found that ends by the deadline.\n";
  }
  constexpr double kPercent = 100;
  double most = 0;
  for (const SimulatedRun& run : runs) {
    if (!run.regret || !run.regret->optimum || run.regret->proven) continue;
    most = std::max(most, 1 - run.regret->least.value_or(0) / *run.regret->optimum);
  }
  if (most > 0) {
    note += fmt::format(
        "\nAn optimum is the best schedule found: a cheaper one may exist, by at most {:.1f} %.\n",
        most * kPercent);
  }
  return note;
}

ClockTime time_of(const SimulatedRun& run) {
  return run.training.result.time.value_or(ClockTime());
}

Goodput goodput(const SimulatedRun& run) {
  return goodput_of(run.training.result.samples, time_of(run));
}

bool has_money(const SimulatedRun& run) {
  return time_of(run).money > 0;
}

bool has_regret(const SimulatedRun& run) {
  return run.regret.has_value();
}

std::string four_digits(double value) {
  return fmt::format("{:.4g}", value);
}

// A column of the time that trainings spend with something; a rare one is shown if some did.
OutputField<SimulatedRun> time_column(const char* heading, double ClockTime::*part,
                                      bool rare = false) {
  return {heading, Column::right,
          [part](const SimulatedRun& run) { return modelled_time(time_of(run).*part); },
          [part, rare](const SimulatedRun& run) { return !rare || time_of(run).*part > 0; }};
}

JsonForm<Regret> regret_form() {
  return form_of_object<Regret>(
      {{"optimum",
        "the money of the cheapest schedule found that ends by the deadline; null if none was "
        "found",
        &Regret::optimum},
       {"proven",
        "true if the search has come to its end: no cheaper schedule exists among those of its "
        "choices (docs/cluster.md)",
        &Regret::proven},
       {"least", "no schedule of any kind costs less; null if there is none", &Regret::least},
       {"missed", "true if the training ended after its deadline, or not at all", &Regret::missed},
       {"money", "money beyond the optimum; null if missed, or without an optimum", &Regret::money},
       {"percent", "the same in percent of the optimum; null if that is 0, too",
        &Regret::percent}});
}

OutputFields<SimulatedRun> run_fields() {
  using Run = SimulatedRun;
  const auto of_result = [](auto member) {
    return [member](const Run& run) { return run.training.result.*member; };
  };
  return {
      {"options", "the options that were given several values, by name", &Run::options},
      {"epochs", "epochs that were completed", of_result(&SimulationResult::epochs),
       OutputColumn{"epochs", Column::right, grouped}},
      {"steps", "steps that were taken", of_result(&SimulationResult::steps),
       OutputColumn{"steps", Column::right, grouped}},
      {"samples", "samples that they showed", of_result(&SimulationResult::samples)},
      {"mean_batch", "samples of a step on average",
       of_part(&Run::training, &SimulatedTraining::mean_batch),
       OutputColumn{"mean batch", Column::right,
                    [](double mean) { return fmt::format("{:.0f}", mean); }}},
      {"cores", "cores of a step", &Run::training,
       form_of_object<SimulatedTraining>(
           {{"fewest", "the fewest cores", &SimulatedTraining::fewest_cores},
            {"most", "the most cores", &SimulatedTraining::most_cores}})},
      {"cores", Column::right, cores_of_step},
      {"host_bytes_per_step", "what a host of --cluster hosts=N sends; 0 where there is one",
       of_part(&Run::training, &SimulatedTraining::host_bytes)},
      {"clock", "the modelled clock at the end (docs/cluster.md)", time_of, clock_form()},
      time_column("time", &ClockTime::seconds),
      {"core-hours", Column::right,
       [](const Run& run) { return four_digits(time_of(run).core_seconds / kSecondsOfHour); }},
      {"money", Column::right, [](const Run& run) { return four_digits(time_of(run).money); },
       has_money},
      {"regret", Column::right,
       [](const Run& run) {
         if (run.regret && run.regret->missed) return std::string("missed");
         return has_regret(run) && run.regret->money ? four_digits(*run.regret->money) : "-";
       },
       has_regret},
      {"%", Column::right,
       [](const Run& run) {
         const std::optional<double> percent = run.regret ? run.regret->percent : std::nullopt;
         return percent ? fmt::format("{:.1f}", *percent) : "-";
       },
       has_regret},
      {"bytes/step", Column::right, [](const Run& run) { return rounded(run.training.host_bytes); },
       [](const Run& run) { return run.training.host_bytes > 0; }},
      {"samples_per_hour", "goodput: samples / hours",
       [](const Run& run) { return goodput(run).samples_per_hour; },
       OutputColumn{"samples/hour", Column::right, rounded}},
      {"samples_per_core_hour", "goodput: samples / core_hours",
       [](const Run& run) { return goodput(run).samples_per_core_hour; },
       OutputColumn{"samples/core-hour", Column::right, rounded}},
      time_column("idle", &ClockTime::idle_seconds),
      time_column("lost", &ClockTime::lost_seconds),
      time_column("restarting", &ClockTime::restart_seconds),
      time_column("joining", &ClockTime::join_seconds, true),
      time_column("redoing", &ClockTime::redone_seconds, true),
      time_column("saving", &ClockTime::checkpoint_seconds, true),
      {"restarts", Column::right, [](const Run& run) { return grouped(time_of(run).restarts); }},
      {"ended_by", "what ended it before its epochs; null where nothing did",
       [](const Run& run) {
         const std::string end = ended_by(run.training.result);
         return end.empty() ? std::nullopt : std::optional(end);
       }},
      {"ended by", Column::left, [](const Run& run) { return ended_by(run.training.result); },
       [](const Run& run) { return !ended_by(run.training.result).empty(); }},
      {"regret", "how it compares with the optimum (docs/cluster.md); null without --regret",
       &Run::regret, regret_form()}};
}

}  // namespace

JsonForm<std::span<const SimulatedRun>> simulation_form() {
  return form_of<std::span<const SimulatedRun>>(form_of_object(run_fields()));
}

std::string simulation_table(std::span<const SimulatedRun> runs, LineWidth width) {
  return table_with_options(run_fields(), runs, width) + regret_note(runs);
}

std::string simulation_json(std::span<const SimulatedRun> runs) {
  return json_text(simulation_form().write(runs), 2) + "\n";
}

namespace {

constexpr std::size_t kMostRuns = 100'000;

struct Values {
  const RunOption* option = nullptr;
  std::vector<std::string> texts{};
};

struct SimulateOptions {
  /// The configuration that the values are applied to.
  RunConfiguration base{.clock = Clock::modelled};
  std::vector<Values> values;
  std::optional<std::int64_t> dataset_size;
  /// Mean times between failures, in seconds.
  std::vector<double> mtbf;
  bool regret = false;
  bool json = false;
};

void define_values(CommandLine& line, SimulateOptions& options) {
  // The options that influence a run's time may each have several values.
  const std::vector<const RunOption*> asked = run_options(Commands::simulate);
  options.values.reserve(asked.size());
  for (const RunOption* option : asked) {
    line.group(option->group);
    if (option->name == kPluginOption) {
      define_plugins(line, options.base);
      continue;
    }
    Values& values = options.values.emplace_back(Values{.option = option});
    line.list(
        option->name, option->value, option->help,
        option->shown_default.empty() ? default_text(*option).value_or("") : option->shown_default,
        [&values, &options](const std::string& text) {
          std::ranges::move(list_values(*values.option, text, options.base.extensions),
                            std::back_inserter(values.texts));
        });
  }
}

// Returns all combinations of the values; those of the last option change fastest.
std::vector<RunConfiguration> combinations(const SimulateOptions& options) {
  std::vector<RunConfiguration> all{options.base};
  for (const Values& values : options.values) {
    if (values.texts.empty()) continue;
    if (values.texts.size() > kMostRuns / all.size()) {
      throw_error("--{}: all combinations are more than {} runs; accepted: fewer values",
                  values.option->name, kMostRuns);
    }
    all = each_with_each(all, values.texts,
                         [&](RunConfiguration& configuration, const std::string& text) {
                           values.option->set(configuration, text);
                         });
  }
  return all;
}

// Loads each trace only once for all runs, as it may be a pipe.
class LoadedSteps {
 public:
  RunSteps of(const RunConfiguration& run) {
    const auto key = std::pair(run.trace.text(), run.on_trace_end);
    const auto found = loaded_.find(key);
    if (found != loaded_.end()) return run_steps_of(run, found->second);
    const RunSteps& loaded =
        loaded_.emplace(key, load_steps(run.trace, run.on_trace_end, "--trace: ")).first->second;
    for (std::string& note : reading_notes(*run.trace, loaded)) {
      if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(std::move(note));
    }
    add_prices(loaded);
    return run_steps_of(run, loaded);
  }
  // The notes on how the traces were read.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  // The prices of the traces that have any, after an empty line.
  [[nodiscard]] std::string prices(LineWidth width) const {
    std::string text;
    for (const std::string& line : prices_) {
      text += fmt::format("{}{}\n", text.empty() ? "\n" : "", fitted(line, width));
    }
    return text;
  }

 private:
  void add_prices(const RunSteps& loaded) {
    const auto* const zones = std::get_if<Zones>(&loaded);
    if (zones == nullptr) return;
    for (const Zone& zone : zones->all()) {
      const auto prices = summary_of(zone.availability).prices;
      if (!prices) continue;
      std::string line =
          fmt::format("prices of {}{}: {}", zones->several() ? zone.name + " in " : "",
                      zones->source(), prices_text(*prices));
      if (std::ranges::find(prices_, line) == prices_.end()) prices_.push_back(std::move(line));
    }
  }

  std::map<std::pair<std::string, std::optional<TraceEnd>>, RunSteps> loaded_;
  std::vector<std::string> notes_;
  std::vector<std::string> prices_;
};

std::vector<RunConfiguration> checked_combinations(const SimulateOptions& options) {
  std::vector<RunConfiguration> configurations = combinations(options);
  // Every configuration is checked before the first simulation, which may take long.
  for (const RunConfiguration& run : configurations) {
    require_consistent(run);
    require_foreseeable(run);
  }
  return configurations;
}

constexpr std::string_view kMarket = "market";
constexpr const char* kOptimum = "optimum";

// The options with several values, and those of a run.
std::vector<std::pair<std::string, std::string>> chosen_by(const SimulateOptions& options,
                                                           const RunConfiguration& run) {
  std::vector<std::pair<std::string, std::string>> chosen;
  for (const Values& values : options.values) {
    // With --regret the market is always shown, since that of the optimum is another.
    if (values.texts.size() < 2 && !(options.regret && values.option->name == kMarket)) continue;
    chosen.emplace_back(values.option->name, values.option->text(run).value_or(""));
  }
  return chosen;
}

Regret regret_against(const SimulatedOptimum& optimum, const RunConfiguration& run,
                      const SimulatedTraining& training) {
  const ClockTime time = training.result.time.value_or(ClockTime());
  const double deadline =
      run.deadline.value_or(std::numeric_limits<double>::infinity()) * kSecondsOfHour;
  Regret regret{.proven = optimum.proven,
                .missed = training.result.ended.has_value() || time.seconds > deadline};
  if (std::isfinite(optimum.least)) regret.least = optimum.least;
  if (!optimum.training) return regret;
  regret.optimum = optimum.training->result.time.value_or(ClockTime()).money;
  if (regret.missed) return regret;
  regret.money = time.money - *regret.optimum;
  if (*regret.optimum != 0) regret.percent = *regret.money / *regret.optimum * 100;
  return regret;
}

// Compares each run with the optimum for it, and adds the optima.
void add_optima(const SimulateOptions& options, LoadedSteps& steps,
                std::vector<SimulatedRun>& runs) {
  CountedProgress progress("searched states for an optimum:",
                           kMostSearches * OptimumOptions().most_states);
  const std::vector<RunConfiguration> configurations = checked_combinations(options);
  // The runs that differ in nothing but the market, by the other options that do.
  std::map<std::vector<std::string>, std::vector<std::size_t>> same;
  for (std::size_t i = 0; i < configurations.size(); ++i) {
    std::vector<std::string> others;
    for (const auto& [name, value] : runs[i].options) {
      if (name != kMarket) others.push_back(value);
    }
    same[others].push_back(i);
  }
  for (const auto& [others, indices] : same) {
    const RunConfiguration& run = configurations[indices.front()];
    std::vector<std::shared_ptr<const MarketPolicy>> policies;
    for (const std::size_t i : indices) {
      if (*configurations[i].market) policies.push_back(*configurations[i].market);
    }
    const SimulatedOptimum optimum =
        simulate_optimum(run, steps.of(run), options.dataset_size, std::move(policies),
                         [&](std::int64_t states) { progress.show(states); });
    for (const std::size_t i : indices) {
      runs[i].regret = regret_against(optimum, configurations[i], runs[i].training);
    }
    if (!optimum.training) continue;
    SimulatedRun best{.options = runs[indices.front()].options, .training = *optimum.training};
    for (auto& [name, value] : best.options) {
      if (name == kMarket) value = kOptimum;
    }
    best.regret = regret_against(optimum, run, best.training);
    runs.push_back(std::move(best));
  }
}

std::vector<SimulatedRun> simulated(const SimulateOptions& options, LoadedSteps& steps) {
  const std::vector<RunConfiguration> configurations = checked_combinations(options);
  CountedProgress progress("simulated", static_cast<std::int64_t>(configurations.size()));
  std::vector<SimulatedRun> runs;
  for (const RunConfiguration& run : configurations) {
    progress.show(static_cast<std::int64_t>(runs.size()));
    runs.push_back({.options = chosen_by(options, run),
                    .training = simulate_training(run, steps.of(run), options.dataset_size)});
  }
  if (options.regret) add_optima(options, steps, runs);
  return runs;
}

std::vector<FailureRow> simulated_with_failures(const SimulateOptions& options,
                                                LoadedSteps& steps) {
  const std::vector<RunConfiguration> configurations = checked_combinations(options);
  CountedProgress progress("simulated",
                           static_cast<std::int64_t>(configurations.size() * options.mtbf.size()));
  std::vector<FailureRow> rows;
  for (const RunConfiguration& run : configurations) {
    for (const double mtbf : options.mtbf) {
      FailureRow row = checkpoints_for(run, steps.of(run), options.dataset_size, mtbf, [&] {
        progress.show(static_cast<std::int64_t>(rows.size()));
      });
      row.options = chosen_by(options, run);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace

int simulate_command(std::span<const std::string> arguments) {
  SimulateOptions options;
  CommandLine line(
      "rubato simulate",
      "Predicts the hours, core-hours and money of trainings on an imagined cluster, without "
      "training: to the last digit those of `rubato train --clock virtual`. Every option takes "
      "several values, separated by commas or by repeating it, and all combinations are compared.");
  define_values(line, options);
  line.group("Data");
  line.whole("dataset-size", "N", "samples in the data set", "that of the built-in data",
             options.dataset_size, 1, kMaxDatasetSize);
  line.group("Markets");
  line.flag("regret",
            "compare each --market with the optimum: the least money with which any policy could "
            "have ended by the deadline, if it had known the future",
            options.regret);
  line.group("Failures");
  line.list("mtbf", "TIME,...",
            "find the best interval between checkpoints for mean times between failures such as "
            "1h,30m, beside those of Young and Daly",
            "", [&options](const std::string& text) {
              for (const std::string_view part : split_at(text, ',')) {
                options.mtbf.push_back(parse_duration(part));
              }
            });
  line.group("Output");
  line.flag("json", "print JSON", options.json);
  line.footer(
      "Values in [] are the defaults. Examples:\n"
      "  rubato simulate --trace spot:most=64,seed=1 --cluster substep=0.1,restart=60\n"
      "  rubato simulate --trace 1024 --cores 8,32,128 --price 0.9 --epochs 90 \\\n"
      "    --dataset-size 1281167 --cluster substep=0.1,bytes=100000000,algorithm=ring \\\n"
      "    --cluster substep=0.1,bytes=100000000,algorithm=halving-doubling");
  line.parse(arguments);
  LoadedSteps steps;
  const LineWidth width = output_width();
  const std::string printed = [&] {
    try {
      if (!options.mtbf.empty()) {
        if (options.regret) {
          throw Error("--regret and --mtbf answer different questions; accepted: one of them");
        }
        const std::vector<FailureRow> rows = simulated_with_failures(options, steps);
        return options.json ? failure_json(rows) : failure_table(rows, width) + steps.prices(width);
      }
      const std::vector<SimulatedRun> runs = simulated(options, steps);
      return options.json ? simulation_json(runs)
                          : simulation_table(runs, width) + steps.prices(width);
    } catch (...) {
      rethrow_of_plugins(*options.base.plugin);
    }
  }();
  for (const std::string& note : steps.notes()) {
    print_error(fmt::format("rubato simulate: {}\n", note));
  }
  print_out(printed);
  return 0;
}

}  // namespace rubato::app
