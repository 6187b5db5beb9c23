// The options of a run are read as lists of texts into Given, and become axes of the design only
// when the whole command line and the design file have been read; so an axis of the arguments
// replaces that of the file. The options of the comparison itself come from compare_keys(), by
// which the design file is read, too. Afterwards the order matters: the axes are set, the base
// takes the options of the runs that are forked, --epochs is reconciled with the budget, and the
// complete design is checked. Nothing is written, and the default folder is only a name.

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/run_options_line.hpp"
#include "compare.hpp"
#include "runs/config/configuration_file.hpp"
#include "runs/config/run_option.hpp"
#include "runs/experiment/conduct/experiment_folder.hpp"
#include "runs/experiment/design/design_file.hpp"

namespace rubato::app {

namespace {

using std::filesystem::path;

// The values of the arguments, before they override those of a file.
struct Given {
  DesignFile file;
  std::map<std::string, std::vector<std::string>, std::less<>> values;
  std::optional<path> out;
  std::optional<path> resume;
  bool quiet = false;
  bool only_plan = false;
  std::string run{};
  double check = 0;
  path reuse{};
};

// The share that a text such as "2%" means.
double parse_share(std::string_view text) {
  constexpr RealRange kPercent{
      .min = 0, .max = 100, .includes_min = false, .words = "a number above 0, up to 100"};
  if (!text.ends_with('%')) throw_error("'{}' is not a share; accepted: a percentage, as 2%", text);
  return parse_real(text.substr(0, text.size() - 1), kPercent) / 100;
}

std::string default_of_option(const RunOption& option) {
  if (!option.in_experiment.empty()) return option.in_experiment;
  return option.shown_default.empty() ? default_text(option).value_or("") : option.shown_default;
}

void define_axes(CommandLine& line, Given& given) {
  for (const RunOption& option : run_options()) {
    line.group(option.group);
    if (option.name == kPluginOption) {
      define_plugins(line, given.file.design.base);
      continue;
    }
    const auto take = [option = &option, &given](const std::string& text) {
      std::ranges::move(list_values(*option, text, given.file.design.base.extensions),
                        std::back_inserter(given.values[option->name]));
    };
    if (option.kind == OptionKind::flag) {
      line.flag_list(option.name, option.help, take);
    } else {
      line.list(option.name, option.value, option.help, default_of_option(option), take);
    }
  }
}

void define_keys(CommandLine& line, Given& given) {
  for (const CompareKey& key : compare_keys()) {
    line.group(key.name == "jobs" ? "Work" : "Comparison");
    const std::string name(key.name);
    const std::string value(key.value);
    if (!key.is_list) {
      line.option(name, value, key.help, key.shown_default,
                  [&given, read = key.read](const std::string& text) { read(given.file, text); });
      continue;
    }
    // A list of the arguments replaces that of a file.
    line.list(name, value, key.help, key.shown_default,
              [&given, read = key.read, is_first = true](const std::string& text) mutable {
                if (std::exchange(is_first, false)) given.file.design.baseline.clear();
                read(given.file, text);
              });
  }
}

void define_work(CommandLine& line, Given& given) {
  line.option("out", "DIR",
              "the folder of the experiment; an existing one continues with the same options, "
              "except that axes may have more values",
              "experiments/<UTC date and time>", [&](const std::string& text) {
                if (text.empty()) throw Error("'' is empty; accepted: a folder");
                given.out = text;
              });
  line.flag("only-plan",
            "check the design, write the folder with plan.txt, the list of its runs, "
            "and train nothing",
            given.only_plan);
  line.option(
      "run", "N|NAME|tune",
      "of the experiment of --resume, do only the run with that number in plan.txt, or that "
      "name, or with the name tune all runs that tune; other processes may do others, on any "
      "machines that share the folder",
      "all runs, and the answer", [&](const std::string& text) { given.run = text; });
  line.option("check", "P%",
              "do that share of the runs, always the same ones, again from the beginning, and "
              "compare the results",
              "none", [&](const std::string& text) { given.check = parse_share(text); });
  line.option("reuse", "DIR",
              "take over the equal runs of the experiments in the folder DIR, or of the experiment "
              "DIR, instead of training them",
              "none", [&](const std::string& text) {
                std::error_code ignored;
                if (!std::filesystem::is_directory(text, ignored)) {
                  throw_error("'{}' is not a folder; accepted: one with experiments", text);
                }
                given.reuse = text;
              });
  line.flag("quiet", "print nothing but errors and the answer", given.quiet);
  line.config([&](const path& file) { given.file = read_design(file, given.file.design.base); });
  line.config_of("resume", "DIR", "continue the experiment in the folder DIR",
                 [&](const std::string& text) {
                   given.resume = text;
                   return path(text) / kDesignFile;
                 });
}

path default_folder() {
  const auto now = std::chrono::system_clock::now();
  const std::string name = fmt::format("experiments/{:%Y-%m-%dT%H-%M-%SZ}",
                                       fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
  return unused_path(name);
}

// Makes --epochs agree with the budget: a budget of epochs sets it, and any other budget lifts it
// unless the user has set it, so that the budget ends the runs.
void bound_epochs(Design& design, bool says_epochs) {
  const RunBudget& budget = design.budget;
  if (budget.amount.empty()) return;
  if (budget.kind != "epochs") {
    if (!says_epochs) run_option("epochs").set(design.base, std::string(kUnboundedEpochs));
    return;
  }
  const std::string epochs = fmt::to_string(design.base.epochs);
  if (says_epochs && epochs != budget.amount) {
    throw_error("--budget epochs={}: --epochs says {}; accepted: one of them", budget.amount,
                epochs);
  }
  run_option("epochs").set(design.base, budget.amount);
}

// Decides what is tuned if not all is said: arguments override a file, and the learning rate is
// searched for unless somebody gives it.
void choose_tuning(const CommandLine& line, DesignFile& file) {
  Design& design = file.design;
  const bool tunes_rate = design.tuning && design.tuning->option == kRateOption;
  if (tunes_rate && line.given().contains(kRateOption) && !is_axis(design, kRateOption)) {
    if (line.given().contains("tune")) {
      throw_error("--lr: --tune {} finds it; accepted: one of them", text_of(*design.tuning));
    }
    design.tuning.reset();
  }
  if (!file.never_tunes) search_rate_by_default(design);
}

void require_tuning(const CommandLine& line, const Design& design) {
  for (const char* const option : {"tune-seeds", "tune-for"}) {
    if (!line.given().contains(option) || design.tuning) continue;
    throw_error("--{}: nothing is tuned; accepted: without --lr, or with --tune", option);
  }
}

// A run of --run belongs to the plan in the folder, which must describe it.
void require_plan_unchanged(const CommandLine& line) {
  const auto refuse = [&](std::string_view name) {
    if (!line.given().contains(name)) return;
    throw_error("--run: --{0} would change the experiment; accepted: first --only-plan with --{0}",
                name);
  };
  for (const RunOption& option : run_options()) {
    if (option.affects == Affects::bits) refuse(option.name);
  }
  for (const CompareKey& key : compare_keys()) {
    if (key.name != "jobs") refuse(key.name);
  }
}

std::int64_t most_threads(const Design& design) {
  std::int64_t most = 1;
  for (const std::string& threads : values_of(design, "threads")) {
    most = std::max<std::int64_t>(most, std::stoll(threads));
  }
  return most;
}

constexpr const char* kDescription =
    "Runs an experiment and says what it shows. Each option of `rubato train` takes several values "
    "here: separated by commas, as a range (--seed 1..5), or by repeating the option. All "
    "combinations are run and compared with a baseline on constant resources with the same seeds.";
constexpr const char* kFooter =
    "Values in [] are the defaults. Examples:\n"
    "  rubato compare --rule linear,root,adascale --seed 1..5 --model softmax\n"
    "  rubato compare --trace a.csv,b.csv --rule constant,linear --seed 1..5 \\\n"
    "    --budget epochs=4 --target 90 --out experiment\n"
    "  rubato compare --from runs/first@40,runs/first@80 --rule linear,root --seed 1..5\n"
    "  rubato compare --resume experiment --seed 1..10\n"
    "  rubato compare --resume experiment --run 7\n"
    "Exit codes: 2 for a mistake in the options or files, 24 if output could not be\n"
    "written, 27 if the answer lacks runs that were killed, or a run needs others\n"
    "first, 33 if a run has two different results, 130 or 143 after a signal. The\n"
    "same command continues after each. Runs that diverge or fail are results.\n"
    "docs/compare.md says more.";

}  // namespace

CompareArguments parse_compare_arguments(std::span<const std::string> arguments) {
  Given given;
  CommandLine line("rubato compare", kDescription);
  define_keys(line, given);
  define_work(line, given);
  define_axes(line, given);
  line.footer(kFooter);
  line.parse(arguments);
  if (given.resume && given.out) {
    throw Error("--out: a resumed experiment stays in its folder; accepted: --resume alone");
  }
  if (!given.run.empty() && !given.resume) {
    throw Error("--run: there is no experiment yet; accepted: with --resume");
  }
  if (!given.run.empty()) require_plan_unchanged(line);
  if (given.only_plan && (!given.run.empty() || given.check > 0)) {
    throw_error("--{}: nothing is trained; accepted: without --only-plan",
                given.run.empty() ? "check" : "run");
  }
  Design& design = given.file.design;
  for (auto& [option, values] : given.values) {
    try {
      set_values(design, option, std::move(values));
    } catch (const Error& error) {
      throw_error("--{}: {}", option, error.what());
    }
  }
  begin_with_runs(design);
  bound_epochs(design, given.file.says_epochs || line.given().contains("epochs"));
  choose_tuning(line, given.file);
  require_tuning(line, design);
  require_consistent(design);
  const std::int64_t threads = most_threads(design);
  const std::int64_t fitting = std::max<std::int64_t>(1, hardware_threads() / threads);
  // A single run has its threads, as others may be trained beside it by other commands.
  const bool shares_cpus = threads == 1 && !line.given().contains("threads") &&
                           (given.run.empty() || given.run == kTuneFolder);
  return CompareArguments{.design = std::move(design),
                          .folder = given.resume ? *given.resume
                                    : given.out  ? *given.out
                                                 : default_folder(),
                          .jobs = given.file.jobs > 0 ? given.file.jobs : fitting,
                          .cpus = shares_cpus ? hardware_threads() : 0,
                          .quiet = given.quiet,
                          .only_plan = given.only_plan,
                          .run = given.run,
                          .check = given.check,
                          .reuse = given.reuse};
}

}  // namespace rubato::app
