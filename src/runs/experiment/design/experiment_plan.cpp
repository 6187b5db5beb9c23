// The runs are all combinations of the values of the columns (trace, rule and the other axes) with
// the seeds. A combination without trace and rule is a setting, which has one baseline and one
// tuned value, unless each combination is tuned for itself. Baselines are configured first, so that
// a combination that equals the baseline of its setting becomes that baseline; the remaining ones
// are added as cells of their own. Equal runs of different cells, such as baselines to which an
// axis makes no difference, get the name of the first of them, by which they are one run for
// whoever trains or lists them. Settings get their indices in the order in which they are first
// asked for (Numbering), and plan() relies on this order being that of settings().

#include "experiment_plan.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>

#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "loop/optim/make_optimizer.hpp"
#include "rate_search.hpp"
#include "runs/config/chosen_parts.hpp"
#include "runs/config/run_option.hpp"
#include "runs/config/values/trace_source.hpp"
#include "value_list.hpp"

namespace rubato {

namespace {

// A value of an axis; a combination has one of each axis.
struct AxisValue {
  std::string option;
  std::string value;
  std::string label;
};
using Combination = std::vector<AxisValue>;

// Values such as "128" for --trace and "linear" for --rule are clear by themselves; "0.9" needs the
// name of its option.
std::string named_label(const AxisValue& value) {
  const OptionKind kind = run_option(value.option).kind;
  const bool speaks = kind == OptionKind::text || kind == OptionKind::text_or_number;
  return speaks ? value.label : fmt::format("{} {}", value.option, value.label);
}

std::string named_slug(const AxisValue& value) {
  return slug(named_label(value));
}

// Trace and rule are always among the columns, and so is every axis but the seed.
std::vector<Axis> columns_of(const Design& design) {
  std::vector<Axis> columns;
  for (const RunOption& option : run_options()) {
    if (option.name == kSeedOption) continue;
    if (!option.is_compared && !is_axis(design, option.name)) continue;
    columns.push_back({.option = option.name, .values = values_of(design, option.name)});
  }
  return columns;
}

// All combinations of the axes' values, the last axis fastest.
std::vector<Combination> product_of(const std::vector<Axis>& axes) {
  std::vector<Combination> combinations{{}};
  for (const Axis& axis : axes) {
    const std::vector<std::string> labels = labels_of(axis.option, axis.values);
    std::vector<AxisValue> values;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      values.push_back({.option = axis.option, .value = axis.values[i], .label = labels[i]});
    }
    combinations = each_with_each(
        combinations, values,
        [](Combination& combination, const AxisValue& value) { combination.push_back(value); });
  }
  return combinations;
}

// The part of a combination that defines its setting: everything except trace and rule.
Combination setting_of(const Combination& combination) {
  Combination rest = combination;
  std::erase_if(rest, [](const AxisValue& value) { return run_option(value.option).is_compared; });
  return rest;
}

std::string words_of(const Combination& combination) {
  const auto words = vector_of(combination, [](const AxisValue& value) {
    return fmt::format("{} {}", value.option, value.label);
  });
  return fmt::to_string(fmt::join(words, ", "));
}

void set(RunConfiguration& configuration, const Combination& combination) {
  for (const auto& [option, value, label] : combination) {
    run_option(option).set(configuration, value);
  }
}

// Numbers texts in the order in which they are first asked for.
class Numbering {
 public:
  std::size_t number_of(const std::string& text) {
    const auto [found, is_new] = numbers_.emplace(text, texts_.size());
    if (is_new) texts_.push_back(text);
    return found->second;
  }
  [[nodiscard]] std::vector<std::string> texts() && { return std::move(texts_); }

 private:
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::string> texts_;
};

// The beginning of the names of runs with this setting.
std::string prefix_of(const Combination& setting) {
  std::string name;
  for (const AxisValue& value : setting) name += named_slug(value) + "_";
  return name;
}

// Python trains the runs of the cells alone by its functions.
void require_no_function(const RunConfiguration& configuration, std::string_view option) {
  const std::string_view own = own_rule_name(configuration.rule.text());
  if (own.empty()) return;
  throw_error("{}: the rule {} is a function in Python; accepted: without {}", option, own, option);
}

// Builds the runs of a design.
class Planning {
 public:
  Planning(const Design& design, const std::vector<std::string>& tuned)
      : design_(design),
        tuned_(tuned),
        columns_(columns_of(design)),
        seeds_(values_of(design, kSeedOption)) {}

  ExperimentPlan plan() &&;
  std::vector<TuningCell> tuning(const std::vector<std::vector<std::string>>& values) &&;
  // A subject of tuning: its words, the beginning of the names of its runs, and its configuration.
  struct Subject {
    std::string words;
    std::string prefix;
    RunConfiguration configuration;
  };
  [[nodiscard]] std::vector<Subject> subjects();

 private:
  // A cell before its runs are made.
  struct Draft {
    PlannedCell cell;
    std::string name;
    RunConfiguration configuration;
  };
  [[nodiscard]] std::vector<Draft> drafts();
  [[nodiscard]] bool tunes_each() const {
    return design_.tuning && design_.tune_for == TuneFor::each;
  }
  // The configuration of a combination, without its seed.
  [[nodiscard]] RunConfiguration configured(const Combination& combination);
  [[nodiscard]] RunConfiguration baseline(const Combination& setting);
  PlannedRun run(const std::string& name, RunConfiguration configuration, const std::string& seed,
                 std::size_t subject);
  // Adds the runs of all cells at the other rates.
  void add_rates();
  void add_cell(PlannedCell cell, const std::string& name, const RunConfiguration& configuration,
                std::size_t subject);
  [[nodiscard]] std::vector<std::string> labels_of_baseline(const RunConfiguration& configuration,
                                                            const Combination& setting) const;
  [[nodiscard]] std::vector<Combination> settings() const;
  [[nodiscard]] std::size_t number_of(const Combination& setting) {
    return settings_.number_of(words_of(setting));
  }

  const Design& design_;
  const std::vector<std::string>& tuned_;
  std::vector<Axis> columns_;
  std::vector<std::string> seeds_;
  Numbering settings_;
  Numbering conditions_;
  std::set<std::string> names_;
  // The runs so far, by their configurations.
  std::map<std::string, PlannedRun> known_;
  ExperimentPlan plan_;
};

std::vector<Combination> Planning::settings() const {
  std::vector<Axis> axes = columns_;
  std::erase_if(axes, [](const Axis& axis) { return run_option(axis.option).is_compared; });
  return product_of(axes);
}

RunConfiguration Planning::configured(const Combination& combination) {
  RunConfiguration configuration = design_.base;
  set(configuration, combination);
  apply_budget(design_.budget, configuration);
  const std::size_t setting = number_of(setting_of(combination));
  if (design_.tuning && !tunes_each() && setting < tuned_.size()) {
    run_option(design_.tuning->option).set(configuration, tuned_[setting]);
  }
  return configuration;
}

RunConfiguration Planning::baseline(const Combination& setting) {
  RunConfiguration configuration = configured(setting);
  // The baseline has constant resources: the batch size that the learning rate is meant for.
  configuration.trace = fmt::to_string(configuration.reference_batch);
  configuration.rule = "constant";
  for (const auto& [name, value] : design_.baseline) run_option(name).set(configuration, value);
  if (!configuration.trace->is_built_in()) return configuration;
  // Markets have no meaning for a trace that is given in steps.
  const auto reset = [&](std::string_view option) {
    if (std::ranges::find(design_.baseline, option, &Assigned::name) == design_.baseline.end()) {
      run_option(option).reset(configuration);
    }
  };
  for (const char* option : {"availability", "market", "deadline"}) reset(option);
  if (configuration.price->of_trace) reset("price");
  configuration.cluster = without_market(configuration.cluster.text());
  return configuration;
}

PlannedRun Planning::run(const std::string& name, RunConfiguration configuration,
                         const std::string& seed, std::size_t subject) {
  run_option(kSeedOption).set(configuration, seed);
  const auto [known, is_new] = known_.try_emplace(to_toml(configuration));
  known->second.subject = subject;
  if (!is_new) return known->second;
  std::string own = fmt::format("{}_seed-{}", name, seed);
  for (int i = 2; !names_.insert(own).second; ++i) {
    own = fmt::format("{}-{}_seed-{}", name, i, seed);
  }
  RunConfiguration checked = configuration;
  // A rule of another program is replaced for the check; that program checks it itself.
  if (!own_rule_name(configuration.rule.text()).empty()) checked.rule = "constant";
  try {
    require_valid(checked);
  } catch (const Error& error) {
    throw_error("{} (of the run {})", error.what(), own);
  }
  const std::uint64_t number = configuration.seed;
  return known->second = {.name = std::move(own),
                          .configuration = std::move(configuration),
                          .seed = number,
                          .subject = subject};
}

void Planning::add_cell(PlannedCell cell, const std::string& name,
                        const RunConfiguration& configuration, std::size_t subject) {
  std::vector<std::string> given;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!is_condition(columns_[i].option)) continue;
    given.push_back(fmt::format("{} {}", columns_[i].option, cell.labels[i]));
  }
  cell.condition = conditions_.number_of(fmt::to_string(fmt::join(given, ", ")));
  for (const std::string& seed : seeds_) {
    cell.runs.push_back(plan_.runs.size());
    plan_.runs.push_back(run(name, configuration, seed, subject));
  }
  plan_.cells.push_back(std::move(cell));
}

std::vector<std::string> Planning::labels_of_baseline(const RunConfiguration& configuration,
                                                      const Combination& setting) const {
  std::vector<std::string> labels;
  for (const Axis& column : columns_) {
    const auto own = std::ranges::find(setting, column.option, &AxisValue::option);
    const std::string value = run_option(column.option).text(configuration).value_or("");
    const bool from_axis = own != setting.end() && own->value == value;
    labels.push_back(from_axis ? own->label : labels_of(column.option, {value}).front());
  }
  return labels;
}

std::vector<Planning::Draft> Planning::drafts() {
  struct Baseline {
    Combination setting;
    RunConfiguration configuration;
    bool is_in_design = false;
  };
  auto baselines = vector_of(settings(), [this](const Combination& setting) {
    return Baseline{setting, baseline(setting)};
  });
  std::vector<Draft> drafts;
  for (const Combination& combination : product_of(columns_)) {
    const RunConfiguration configuration = configured(combination);
    PlannedCell cell{.setting = number_of(setting_of(combination))};
    std::vector<std::string> parts;
    for (const AxisValue& value : combination) {
      cell.labels.push_back(value.label);
      parts.push_back(named_slug(value));
    }
    Baseline& own = baselines[cell.setting];
    cell.is_baseline = configuration == own.configuration;
    own.is_in_design = own.is_in_design || cell.is_baseline;
    drafts.push_back({std::move(cell), fmt::to_string(fmt::join(parts, "_")), configuration});
  }
  for (std::size_t i = 0; i < baselines.size(); ++i) {
    const auto& [setting, configuration, is_in_design] = baselines[i];
    if (is_in_design) continue;
    drafts.push_back(
        {{.labels = labels_of_baseline(configuration, setting), .setting = i, .is_baseline = true},
         prefix_of(setting) + "baseline",
         configuration});
  }
  return drafts;
}

ExperimentPlan Planning::plan() && {
  std::vector<Draft> all = drafts();
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto& [cell, name, configuration] = all[i];
    if (tunes_each() && i < tuned_.size()) {
      run_option(design_.tuning->option).set(configuration, tuned_[i]);
    }
    const std::size_t subject = tunes_each() ? i : cell.setting;
    add_cell(std::move(cell), name, configuration, subject);
  }
  std::ranges::stable_sort(plan_.cells, {}, &PlannedCell::condition);
  add_rates();
  for (const Axis& column : columns_) plan_.columns.push_back(column.option);
  plan_.seeds = seeds_;
  plan_.conditions = std::move(conditions_).texts();
  plan_.settings = std::move(settings_).texts();
  return std::move(plan_);
}

void Planning::add_rates() {
  std::vector<double> factors;
  for (std::int64_t factor = 2; factor <= design_.rates; factor *= 2) {
    factors.push_back(1 / static_cast<double>(factor));
    factors.push_back(static_cast<double>(factor));
  }
  std::ranges::sort(factors);
  for (std::size_t cell = 0; cell < plan_.cells.size(); ++cell) {
    for (const double factor : factors) {
      PlannedRate rate{.cell = cell, .factor = factor};
      for (std::size_t i = 0; i < seeds_.size(); ++i) {
        const PlannedRun& own = plan_.runs[plan_.cells[cell].runs[i]];
        RunConfiguration configuration = own.configuration;
        require_no_function(configuration, "--rates");
        run_option(kRateOption)
            .set(configuration, fmt::format("{:.6g}", configuration.learning_rate * factor));
        const std::string name = own.name.substr(0, own.name.rfind("_seed-"));
        rate.runs.push_back(plan_.runs.size());
        plan_.runs.push_back(run(fmt::format("{}_lr-x{:g}", name, factor), std::move(configuration),
                                 seeds_[i], own.subject));
      }
      plan_.rates.push_back(std::move(rate));
    }
  }
}

std::vector<Planning::Subject> Planning::subjects() {
  std::vector<Subject> subjects;
  if (!tunes_each()) {
    for (const Combination& setting : settings()) {
      subjects.push_back({words_of(setting), prefix_of(setting), baseline(setting)});
    }
    return subjects;
  }
  for (auto& [cell, name, configuration] : drafts()) {
    require_no_function(configuration, "--tune-for each");
    std::vector<std::string> words;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      words.push_back(fmt::format("{} {}", columns_[i].option, cell.labels[i]));
    }
    subjects.push_back(
        {fmt::to_string(fmt::join(words, ", ")), name + "_", std::move(configuration)});
  }
  return subjects;
}

std::vector<TuningCell> Planning::tuning(const std::vector<std::vector<std::string>>& values) && {
  std::vector<TuningCell> cells;
  const RunOption& option = run_option(design_.tuning->option);
  const std::vector<Subject> all = subjects();
  for (std::size_t i = 0; i < all.size(); ++i) {
    RunConfiguration configuration = all[i].configuration;
    for (const std::string& value : values.at(i)) {
      option.set(configuration, value);
      TuningCell cell{.subject = i, .value = value, .runs = {}};
      const std::string own = all[i].prefix + slug(fmt::format("{}-{}", option.name, value));
      for (const std::string& seed : tuning_seeds_of(design_)) {
        cell.runs.push_back(run(own, configuration, seed, i));
      }
      cells.push_back(std::move(cell));
    }
  }
  return cells;
}

}  // namespace

bool is_condition(std::string_view option) {
  return run_option(option).is_condition;
}

ExperimentPlan plan_of(const Design& design, const std::vector<std::string>& tuned) {
  require_consistent(design);
  return Planning(design, tuned).plan();
}

std::vector<TuningSubject> subjects_of(const Design& design) {
  std::vector<TuningSubject> subjects;
  for (const auto& [words, prefix, configuration] : Planning(design, {}).subjects()) {
    const OptimizerChoice& optimizer = *configuration.optimizer;
    const bool is_known = configuration.from.empty() && !optimizer.own;
    subjects.push_back(
        {words, is_known ? facts_of(optimizer.method).usual_rate : configuration.learning_rate});
  }
  return subjects;
}

std::vector<TuningCell> tuning_of(const Design& design,
                                  const std::vector<std::vector<std::string>>& values) {
  require_consistent(design);
  return Planning(design, {}).tuning(values);
}

std::vector<TuningCell> tuning_of(const Design& design) {
  if (!design.tuning) return {};
  return tuning_of(design, vector_of(subjects_of(design), [&](const TuningSubject& subject) {
                     return next_values(*design.tuning, subject.usual_rate, {});
                   }));
}

std::vector<std::string> tuning_seeds_of(const Design& design) {
  const std::vector<std::string> compared = values_of(design, kSeedOption);
  std::vector<std::string> seeds;
  for (std::uint64_t seed = kFirstTuningSeed; std::ssize(seeds) < design.tuning_seeds; ++seed) {
    std::string text = fmt::to_string(seed);
    if (std::ranges::find(compared, text) == compared.end()) seeds.push_back(std::move(text));
  }
  return seeds;
}

std::vector<std::string> names_of_runs(const Design& design) {
  return names_of_runs(design, tuning_of(design));
}

std::vector<std::string> names_of_runs(const Design& design,
                                       const std::vector<TuningCell>& tuning) {
  std::vector<std::string> names;
  std::set<std::string> known;
  const auto add = [&](std::string name) {
    if (known.insert(name).second) names.push_back(std::move(name));
  };
  for (const TuningCell& cell : tuning) {
    for (const PlannedRun& run : cell.runs) add(fmt::format("{}{}", kTuneMark, run.name));
  }
  for (const PlannedRun& run : plan_of(design).runs) add(run.name);
  return names;
}

}  // namespace rubato
