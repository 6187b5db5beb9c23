// A design holds values as text in the form that RunOption::set() takes. An option has one value in
// the base or several in an axis; set_values() moves it from one to the other, and the base then
// has the default. Text from users is set in a configuration that is thrown away and read back, so
// that equal values have equal texts. begin_with_runs() replaces the base of a design of forks by
// the options of the run that they come from, after it has checked that all of these runs agree.

#include "design.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "runs/config/run_option.hpp"
#include "runs/config/values/fork_point.hpp"
#include "runs/run/fork.hpp"
#include "value_list.hpp"

namespace rubato {

namespace {

constexpr std::array<RunBudgetKind, 5> kBudgetKinds{
    {{"epochs", "passes over the training data", "epochs", "", "epochs"},
     {"samples", "samples, in whole steps", "samples", "", "samples"},
     {"iterations", "scale-invariant iterations, as the rule counts them", "iterations", "",
      "scale-invariant iterations"},
     {"hours", "hours on the virtual clock", "hours", "clock=virtual", "virtual hours"},
     {"money", "money on the virtual clock, at --price", "money", "clock=virtual", "of money"}}};

}  // namespace

std::span<const RunBudgetKind> budget_kinds() {
  return kBudgetKinds;
}

const RunBudgetKind& budget_kind(std::string_view name) {
  return find_row("budget", name, kBudgetKinds);
}

RunBudget parse_budget(const std::string& text) {
  const std::vector<Assigned> parts = list_assigned(text);
  if (parts.size() != 1) {
    throw_error("'{}' is more than one budget; accepted: one, such as epochs=4", text);
  }
  const RunBudget budget{.kind = parts.front().name, .amount = parts.front().value};
  const RunOption& option = run_option(budget_kind(budget.kind).option);
  RunConfiguration read;
  option.set(read, budget.amount);
  return {.kind = budget.kind, .amount = option.text(read).value_or(budget.amount)};
}

void apply_budget(const RunBudget& budget, RunConfiguration& configuration) {
  if (budget.amount.empty()) return;
  const RunBudgetKind& kind = budget_kind(budget.kind);
  run_option(kind.option).set(configuration, budget.amount);
  if (kind.needs.empty()) return;
  for (const Assigned& needed : list_assigned(kind.needs)) {
    run_option(needed.name).set(configuration, needed.value);
  }
}

std::string describe(const RunBudget& budget) {
  const RunBudgetKind& kind = budget_kind(budget.kind);
  std::string unit(kind.unit);
  if (budget.amount == "1" && unit.ends_with('s')) unit.pop_back();
  return fmt::format("{} {}", budget.amount, unit);
}

namespace {

// Position of an option in the table; the seed, which results are averaged over, comes last.
std::size_t place_in_table(std::string_view option) {
  const auto options = run_options();
  if (option == kSeedOption) return options.size();
  const auto found = std::ranges::find(options, option, &RunOption::name);
  return static_cast<std::size_t>(found - options.begin());
}

void require_different(const std::vector<std::string>& values) {
  std::set<std::string_view> seen;
  for (const std::string& value : values) {
    if (seen.insert(value).second) continue;
    throw_error("{} is listed twice; accepted: distinct values", value);
  }
}

}  // namespace

RunConfiguration Design::default_base() {
  RunConfiguration base;
  for (const RunOption& option : run_options()) {
    if (!option.in_experiment.empty()) option.set(base, option.in_experiment);
  }
  return base;
}

void set_values(Design& design, std::string_view option, std::vector<std::string> values) {
  const RunOption& row = run_option(option);
  require_different(values);
  design.given.add(option);
  std::erase_if(design.axes, [&](const Axis& axis) { return axis.option == option; });
  row.set(design.base, values.front());
  if (values.size() == 1) return;
  // The base keeps its default, since the axis sets the option.
  const RunConfiguration fallback = Design::default_base();
  if (const auto text = row.text(fallback)) {
    row.set(design.base, *text);
  } else {
    row.reset(design.base);
  }
  const auto behind = std::ranges::find_if(design.axes, [&](const Axis& axis) {
    return place_in_table(axis.option) > place_in_table(option);
  });
  design.axes.insert(behind, {.option = std::string(option), .values = std::move(values)});
}

namespace {

// Returns whether a design that does not mention the option takes it from the run that its forks
// come from.
bool is_of_run(const Design& design, const RunOption& option) {
  return option.in_experiment.empty() && option.name != kFromOption &&
         !design.given.contains(option.name);
}

// Throws Error for an option that differs between the forks and is fixed in one.
void require_no_fixed_choice(std::string_view name) {
  const RunOption& option = run_option(name);
  if (option.fixed_in_fork.empty()) return;
  throw_error("--{}: a fork has that of its run, because {}; accepted: without --{}", name,
              option.fixed_in_fork, name);
}

std::vector<std::string> contents(const TraceChoice& trace) {
  return vector_of(files_of(trace),
                   [](const std::filesystem::path& file) { return read_file(file); });
}

// Throws Error if the two runs differ in an option that the design takes from them.
void require_alike(const Design& design, const ForkPoint& one, const RunConfiguration& first,
                   const ForkPoint& other, const RunConfiguration& second) {
  for (const RunOption& option : run_options()) {
    if (!is_of_run(design, option) || option.affects != Affects::bits) continue;
    const auto a = option.text(first);
    const auto b = option.text(second);
    const bool are_files = a && b && names_file(option, *a) && names_file(option, *b);
    // Traces are copied into the folders of their runs; a fork compares other files by content.
    const bool is_same = are_files && option.name == kTraceOption
                             ? contents(*first.trace) == contents(*second.trace)
                             : are_files || a == b;
    if (is_same) continue;
    throw_error("--from: --{} is {} in {}, and {} in {}; accepted: --{} for all forks", option.name,
                a.value_or("not set"), one.run.string(), b.value_or("not set"), other.run.string(),
                option.name);
  }
}

}  // namespace

void begin_with_runs(Design& design) {
  std::vector<ForkPoint> points;
  for (const std::string& text : values_of(design, kFromOption)) {
    if (!text.empty()) points.push_back(*Parsed<ForkPoint>(text));
  }
  if (points.empty()) return;
  for (const Axis& axis : design.axes) require_no_fixed_choice(axis.option);
  for (const Assigned& assigned : design.baseline) require_no_fixed_choice(assigned.name);
  if (design.tuning) require_no_fixed_choice(design.tuning->option);

  const RunConfiguration first = configuration_of_run(points.front().run, design.base);
  RunConfiguration base = first;
  for (const RunOption& option : run_options()) {
    if (is_of_run(design, option)) continue;
    option.reset(base);
    if (const auto text = option.text(design.base)) option.set(base, *text);
  }
  for (const ForkPoint& point : points) {
    const RunConfiguration run = configuration_of_run(point.run, design.base);
    require_alike(design, points.front(), first, point, run);
    require_forkable(with_paths_from(point.run, run), with_paths_from(point.run, base));
    const RunHistory history(point.run, run);
    history.require_unchanged();
    history.require_step(point.step, "--from: ");
  }
  design.base = std::move(base);
}

std::vector<RunBudget> limits_of(const Design& design) {
  std::vector<RunBudget> limits;
  for (const RunBudgetKind& kind : budget_kinds()) {
    if (!design.budget.amount.empty() && design.budget.kind == kind.name) {
      limits.push_back(design.budget);
      continue;
    }
    const auto amount = run_option(kind.option).text(design.base);
    if (!amount || is_axis(design, kind.option)) continue;
    if (kind.option == "epochs" && *amount == kUnboundedEpochs) continue;
    limits.push_back({.kind = std::string(kind.name), .amount = *amount});
  }
  return limits;
}

std::vector<std::string> values_of(const Design& design, std::string_view option) {
  const auto found = std::ranges::find(design.axes, option, &Axis::option);
  if (found != design.axes.end()) return found->values;
  return {run_option(option).text(design.base).value_or("")};
}

bool is_axis(const Design& design, std::string_view option) {
  return std::ranges::find(design.axes, option, &Axis::option) != design.axes.end();
}

namespace {

constexpr std::string_view kOnly = ",only";

}  // namespace

Tuning parse_tuning(const std::string& given, const Extensions& own) {
  constexpr std::string_view kExample = "lr=0.01,0.02,0.05";
  if (given == kRateOption) return {.option = given};
  const bool is_closed = given.ends_with(kOnly);
  const std::string text = given.substr(0, given.size() - (is_closed ? kOnly.size() : 0));
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw_error("'{}' is not of the form NAME=VALUE; accepted: such as {}", text, kExample);
  }
  const RunOption& option = run_option(text.substr(0, equals));
  if (option.is_compared || option.name == kSeedOption) {
    throw_error("{} is not tuned but compared; accepted: such as {}", option.name, kExample);
  }
  Tuning tuning{.option = option.name,
                .values = list_values(option, text.substr(equals + 1), own),
                .is_closed = is_closed};
  require_different(tuning.values);
  if (tuning.values.size() < 2) {
    throw_error("{} has one value only; accepted: several, such as {}", option.name, kExample);
  }
  return tuning;
}

std::string text_of(const Tuning& tuning) {
  if (tuning.is_search()) return tuning.option;
  return fmt::format("{}={}{}", tuning.option, fmt::join(tuning.values, ","),
                     tuning.is_closed ? kOnly : "");
}

void search_rate_by_default(Design& design) {
  if (design.tuning || design.given.contains(kRateOption)) return;
  if (std::ranges::find(design.baseline, kRateOption, &Assigned::name) != design.baseline.end()) {
    return;
  }
  design.tuning = Tuning{.option = std::string(kRateOption)};
}

std::vector<Assigned> parse_baseline(const std::string& text, const Extensions& own) {
  std::vector<Assigned> all = list_assigned(text);
  RunConfiguration read{.extensions = own};
  for (auto& [name, value] : all) {
    const RunOption& option = run_option(name);
    if (name == kSeedOption) {
      throw Error(
          "the baseline has the seeds of the runs that it is compared with; accepted: other "
          "options");
    }
    option.set(read, value);
    value = option.text(read).value_or(value);
  }
  return all;
}

std::int64_t parse_rates(const std::string& text) {
  constexpr std::int64_t kMost = 1024;
  const std::int64_t rates = parse_whole(text, 1, kMost);
  if ((rates & (rates - 1)) != 0) {
    throw_error("{} is not a power of two; accepted: 1, 2, 4, 8, ... {}", rates, kMost);
  }
  return rates;
}

double parse_target(const std::string& text) {
  return parse_real(text, kPositive);
}

namespace {

constexpr const char* kBaselineMargin = "baseline";

}  // namespace

Margin parse_margin(const std::string& text) {
  if (text == kBaselineMargin) return {};
  if (!is_number(text)) {
    throw_error("'{}' is not a margin; accepted: baseline, or a number above 0", text);
  }
  return {.amount = parse_real(text, kPositive)};
}

std::string text_of(const Margin& margin) {
  return margin.amount ? fmt::to_string(*margin.amount) : kBaselineMargin;
}

void require_consistent(const Design& design) {
  if (design.tuning && is_axis(design, design.tuning->option)) {
    throw_error(
        "--tune: {} takes several values in the experiment; accepted: one of --tune {}=... and "
        "--{} with several values",
        design.tuning->option, design.tuning->option, design.tuning->option);
  }
  for (const Assigned& assigned : design.baseline) {
    if (!design.tuning || assigned.name != design.tuning->option) continue;
    throw_error(
        "--baseline: {} is tuned for all runs, those of the baseline too; accepted: one of "
        "--tune {}=... and --baseline {}=...",
        assigned.name, assigned.name, assigned.name);
  }
  if (design.rates > 1 && is_axis(design, kRateOption)) {
    throw Error("--rates: lr takes several values in the experiment; accepted: one of them");
  }
  if (design.budget.amount.empty()) return;
  const RunBudgetKind& kind = budget_kind(design.budget.kind);
  const std::string_view option = kind.option;
  if (!kind.needs.empty() && design.base.cluster.empty() && !is_axis(design, "cluster")) {
    throw_error(
        "--budget {}={}: the time of a step is not known; accepted: with --cluster substep=SECONDS "
        "(rubato calibrate measures them here){}",
        design.budget.kind, design.budget.amount, option == "money" ? " and --price" : "");
  }
  if (is_axis(design, option)) {
    throw_error(
        "--budget: --{} takes several values, and the budget is the same for all; accepted: one of "
        "them",
        option);
  }
  if (design.tuning && design.tuning->option == option) {
    throw_error("--tune: {} is the budget; accepted: another option", option);
  }
}

}  // namespace rubato
