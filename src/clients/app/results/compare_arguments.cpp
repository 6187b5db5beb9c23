#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>

#include "base/core/file.hpp"
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

constexpr std::int64_t kMostJobs = 4096;

// The values of the arguments, before they override those of a file.
struct Given {
  DesignFile file;
  std::map<std::string, std::vector<std::string>, std::less<>> values;
  std::vector<Assigned> baseline;
  std::optional<std::int64_t> jobs;
  std::optional<path> out;
  std::optional<path> resume;
  bool quiet = false;
};

std::string default_of_option(const RunOption& option) {
  if (!option.in_experiment.empty()) return option.in_experiment;
  return option.shown_default.empty() ? option.text(RunConfiguration()).value_or("")
                                      : option.shown_default;
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

void define_fairness(CommandLine& line, Given& given) {
  Design& design = given.file.design;
  line.group("Comparison");
  line.option("budget", "KIND=AMOUNT",
              fmt::format("the budget of each run: {}", fmt::join(row_names(budget_kinds()), ", ")),
              "the epochs of --epochs",
              [&](const std::string& text) { design.budget = parse_budget(text); });
  line.option("tune", "OPTION=VALUE,...",
              "train the baseline with each value first, and use the best for all runs; separately "
              "for each combination of the axes other than trace, rule and seed",
              "", [&](const std::string& text) {
                design.tuning = parse_tuning(text, design.base.extensions);
              });
  line.option("tune-seeds", "N", "the number of seeds to tune with",
              fmt::to_string(Design().tuning_seeds), [&](const std::string& text) {
                design.tuning_seeds = parse_whole(text, 1, kMostTuningSeeds);
              });
  line.list("baseline", "OPTION=VALUE,...",
            "options of the baseline, which has the same seeds; a value with arguments comes last, "
            "or in its own --baseline",
            "trace=<ref-batch>,rule=constant", [&](const std::string& text) {
              std::ranges::move(parse_baseline(text, design.base.extensions),
                                std::back_inserter(given.baseline));
            });
  line.option("target", "P",
              "report when runs reach a test accuracy of P percent, or, for models without one, a "
              "test loss of P",
              "", [&](const std::string& text) { design.target = parse_target(text); });
}

void define_work(CommandLine& line, Given& given) {
  line.group("Work");
  line.option("jobs", "N", "runs at the same time, each a process with --threads threads",
              "as many as there are threads for",
              [&](const std::string& text) { given.jobs = parse_whole(text, 1, kMostJobs); });
  line.option("out", "DIR",
              "the folder of the experiment; an existing one continues with the same options, "
              "except that axes may have more values",
              "experiments/<UTC date and time>", [&](const std::string& text) {
                if (text.empty()) throw Error("'' is empty; accepted: a folder");
                given.out = text;
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
    throw Error(fmt::format("--budget epochs={}: --epochs says {}; accepted: one of them",
                            budget.amount, epochs));
  }
  run_option("epochs").set(design.base, budget.amount);
}

void require_tuning_seeds(const CommandLine& line, const Design& design) {
  if (!line.given().contains("tune-seeds") || design.tuning) return;
  throw Error("--tune-seeds: nothing is tuned; accepted: with --tune");
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
    "    --tune lr=0.01,0.02,0.05 --budget epochs=4 --target 90 --out experiment\n"
    "  rubato compare --resume experiment --seed 1..10\n"
    "Exit codes: 2 for a mistake in the options or files, 24 if output could not be\n"
    "written, 27 if the answer lacks runs that were killed, 130 or 143 after a\n"
    "signal. The same command continues after each. Runs that diverge or fail are\n"
    "results. docs/compare.md says more.";

}  // namespace

CompareArguments parse_compare_arguments(std::span<const std::string> arguments) {
  Given given;
  CommandLine line("rubato compare", kDescription);
  define_fairness(line, given);
  define_work(line, given);
  define_axes(line, given);
  line.footer(kFooter);
  line.parse(arguments);
  if (given.resume && given.out) {
    throw Error("--out: a resumed experiment stays in its folder; accepted: --resume alone");
  }
  Design& design = given.file.design;
  for (auto& [option, values] : given.values) {
    try {
      set_values(design, option, std::move(values));
    } catch (const Error& error) {
      throw Error(fmt::format("--{}: {}", option, error.what()));
    }
  }
  if (!given.baseline.empty()) design.baseline = std::move(given.baseline);
  bound_epochs(design, given.file.says_epochs || line.given().contains("epochs"));
  require_tuning_seeds(line, design);
  require_consistent(design);
  const std::int64_t fitting = std::max<std::int64_t>(1, hardware_threads() / most_threads(design));
  const std::int64_t jobs = given.file.jobs > 0 ? given.file.jobs : fitting;
  return CompareArguments{.design = std::move(design),
                          .folder = given.resume ? *given.resume
                                    : given.out  ? *given.out
                                                 : default_folder(),
                          .jobs = given.jobs.value_or(jobs),
                          .quiet = given.quiet};
}

}  // namespace rubato::app
