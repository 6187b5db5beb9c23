// The lines above the first table of a design file set the base, those of [axes] the axes, and the
// keys of [compare] are the rows of compare_keys(), from which the command line of `rubato compare`
// has the same options. Plug-ins are loaded before the other lines are read, as for a run's
// configuration, and paths are mapped in a pass of its own, which includes axes, baseline and tuned
// values. The number of parallel runs is read but never written, because it is not part of the
// design.

#include "design_file.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "runs/config/configuration_file.hpp"
#include "runs/config/run_option.hpp"
#include "runs/config/toml.hpp"

namespace rubato {

namespace {

constexpr std::string_view kAxes = "axes";
constexpr std::string_view kCompare = "compare";
constexpr std::string_view kBaseline = "baseline";
constexpr std::string_view kNever = "never";
constexpr std::int64_t kMostJobs = 4096;

// The values that a line of [axes] lists. Text may be a range of whole numbers, as on the command
// line.
std::vector<std::string> axis_values(const TomlTable::Line& line, const Extensions& own) {
  const RunOption& option = run_option(line.key);
  std::vector<std::string> values;
  for (const TomlEntry& entry : line.values) {
    const bool range = option.kind == OptionKind::whole && entry.type == TomlEntry::Type::string &&
                       entry.value.find("..") != std::string::npos;
    if (range) {
      std::ranges::move(list_values(option, entry.value, own), std::back_inserter(values));
      continue;
    }
    RunConfiguration read{.extensions = own};
    set_option(read, entry);
    values.push_back(option.text(read).value_or(""));
  }
  return values;
}

void read_compare(DesignFile& file, const TomlEntry& entry) {
  try {
    find_row("key", entry.key, compare_keys()).read(file, entry.value);
  } catch (const Error& error) {
    throw_error("{}: {}", entry.key, error.what());
  }
}

void read_line(DesignFile& file, std::string_view table, const TomlTable::Line& line) {
  if (table == kAxes) {
    set_values(file.design, line.key, axis_values(line, file.design.base.extensions));
    return;
  }
  if (line.values.size() > 1 && !(table == kCompare && line.key == kBaseline)) {
    throw_error("'{}' is a list; accepted: one value, or the list below [axes]", line.key);
  }
  if (table == kCompare) {
    for (const TomlEntry& entry : line.values) read_compare(file, entry);
    return;
  }
  const TomlEntry& entry = line.values.front();
  if (entry.key == "epochs") file.says_epochs = true;
  set_option(file.design.base, entry);
  file.design.given.add(entry.key);
}

// Applies `map` to all paths of a design.
void map_paths(Design& design, const PathMap& map) {
  const auto mapped = [&](std::string_view name, const std::string& text) {
    const RunOption& option = run_option(name);
    return option.map_path == nullptr ? text : option.map_path(text, map);
  };
  design.base = map_paths(std::move(design.base), map);
  for (Axis& axis : design.axes) {
    for (std::string& value : axis.values) value = mapped(axis.option, value);
  }
  for (auto& [name, value] : design.baseline) value = mapped(name, value);
  if (!design.tuning) return;
  for (std::string& value : design.tuning->values) value = mapped(design.tuning->option, value);
}

std::string axes_text(const Design& design) {
  std::string text;
  for (const auto& [option, values] : design.axes) {
    const auto elements = vector_of(values, [&row = run_option(option)](const std::string& value) {
      return toml_value(row, value);
    });
    text += fmt::format("{} = [{}]\n", option, fmt::join(elements, ", "));
  }
  return text.empty() ? text : "\n[axes]\n" + text;
}

std::string compare_text(const Design& design) {
  std::string text;
  if (!design.budget.amount.empty()) {
    text +=
        fmt::format("budget = {}\n", toml_string(design.budget.kind + "=" + design.budget.amount));
  }
  if (!design.baseline.empty()) {
    // The text is a list of strings, because values may contain commas.
    const auto parts = vector_of(design.baseline, [](const Assigned& assigned) {
      return toml_string(fmt::format("{}={}", assigned.name, assigned.value));
    });
    text += fmt::format("{} = [{}]\n", kBaseline, fmt::join(parts, ", "));
  }
  if (design.tuning) {
    text += fmt::format("tune = {}\ntune-seeds = {}\n", toml_string(text_of(*design.tuning)),
                        design.tuning_seeds);
  }
  if (design.tuning && design.tune_for != TuneFor::baseline) {
    text += fmt::format("tune-for = {}\n",
                        toml_string(std::string(choice_name(kTuneFor, design.tune_for))));
  }
  if (design.rates > 1) text += fmt::format("rates = {}\n", design.rates);
  if (design.target) text += fmt::format("target = {}\n", *design.target);
  if (design.margin) {
    const std::string margin = text_of(*design.margin);
    text += fmt::format("margin = {}\n", design.margin->amount ? margin : toml_string(margin));
  }
  return text.empty() ? text : "\n[compare]\n" + text;
}

}  // namespace

std::span<const CompareKey> compare_keys() {
  static const std::array<CompareKey, 9> keys{
      {{.name = "budget",
        .value = "KIND=AMOUNT",
        .help =
            fmt::format("the budget of each run: {}", fmt::join(row_names(budget_kinds()), ", ")),
        .shown_default = "the epochs of --epochs",
        .read = [](DesignFile& file,
                   const std::string& text) { file.design.budget = parse_budget(text); }},
       {.name = "tune",
        .value = "lr|OPTION=VALUE,...[,only]|never",
        .help = "train the baseline with several values first, and use the best for all runs: "
                "with those that a search for the learning rate needs, or with each of a list and "
                "up to six beyond its end if the best is there, unless it ends with 'only'; "
                "separately for each combination of the axes other than trace, rule and seed",
        .shown_default = "lr, unless --lr or --baseline says it",
        .read =
            [](DesignFile& file, const std::string& text) {
              file.never_tunes = text == kNever;
              file.design.tuning.reset();
              if (file.never_tunes) return;
              file.design.tuning = parse_tuning(text, file.design.base.extensions);
            }},
       {.name = "tune-seeds",
        .value = "N",
        .help = "the number of seeds to tune with, which are none of those that are compared",
        .shown_default = fmt::to_string(Design().tuning_seeds),
        .read =
            [](DesignFile& file, const std::string& text) {
              file.design.tuning_seeds = parse_whole(text, 1, kMostTuningSeeds);
            }},
       {.name = "tune-for",
        .value = "baseline|each",
        .help = "tune for the baseline, whose value all runs have, or each combination of trace, "
                "rule and the other axes for itself",
        .shown_default = "baseline",
        .read =
            [](DesignFile& file, const std::string& text) {
              file.design.tune_for = parse_choice("value", text, kTuneFor);
            }},
       {.name = "rates",
        .value = "N",
        .help = "repeat the comparison at 1/N to N times the learning rate, in powers of two, and "
                "say how far it may be from the best",
        .shown_default = "1",
        .read = [](DesignFile& file,
                   const std::string& text) { file.design.rates = parse_rates(text); }},
       {.name = kBaseline,
        .value = "OPTION=VALUE,...",
        .help = "options of the baseline, which has the same seeds; a value with arguments comes "
                "last, or in its own --baseline",
        .shown_default = "trace=<ref-batch>,rule=constant",
        .is_list = true,
        .read =
            [](DesignFile& file, const std::string& text) {
              std::ranges::move(parse_baseline(text, file.design.base.extensions),
                                std::back_inserter(file.design.baseline));
            }},
       {.name = "target",
        .value = "P",
        .help = "report when runs reach a test accuracy of P percent, or, for models without one, "
                "a test loss of P",
        .read = [](DesignFile& file,
                   const std::string& text) { file.design.target = parse_target(text); }},
       {.name = "margin",
        .value = "X|baseline",
        .help = "test whether each choice is behind the best, and behind the baseline, by less "
                "than X points of accuracy (or test loss), or than one standard deviation of the "
                "baseline over the seeds",
        .read = [](DesignFile& file,
                   const std::string& text) { file.design.margin = parse_margin(text); }},
       {.name = "jobs",
        .value = "N",
        .help = "the most runs at the same time, each a process; CPUs that would be idle become "
                "threads of the runs, unless --threads says their number",
        .shown_default = "as many as there are CPUs for",
        .read = [](DesignFile& file, const std::string& text) {
          file.jobs = parse_whole(text, 1, kMostJobs);
        }}}};
  return keys;
}

DesignFile parse_design(std::string_view text, const std::string& source,
                        const Extensions& extensions) {
  DesignFile file;
  file.design.base.extensions = extensions;
  for (const TomlTable& table : parse_toml_tables(text, source)) {
    if (!table.name.empty() && table.name != kAxes && table.name != kCompare) {
      throw_error("{}:{}: {}", source, table.line,
                  unknown_name_message("table", table.name, std::array{kAxes, kCompare}));
    }
    for (const TomlTable::Line& line : table.lines) {
      try {
        read_line(file, table.name, line);
      } catch (const Error& error) {
        throw_error("{}:{}: {}", source, line.values.front().line, error.what());
      }
    }
  }
  return file;
}

DesignFile read_design(const std::filesystem::path& path, const RunConfiguration& around) {
  const std::string text = configuration_text(path);
  RunConfiguration named{.plugin = around.plugin, .extensions = around.extensions};
  const std::vector<TomlTable> tables = parse_toml_tables(text, path.string());
  for (const TomlTable::Line& line : tables.front().lines) {
    if (line.key == kPluginOption) load_named_plugins(named, line.values.front(), path);
  }
  DesignFile file = parse_design(text, path.string(), named.extensions);
  const std::filesystem::path folder = folder_of_names(path);
  map_paths(file.design, [&](const std::filesystem::path& inside) { return folder / inside; });
  file.design.base.plugin = std::move(named.plugin);
  return file;
}

std::string to_toml(const Design& given, const std::filesystem::path& folder) {
  Design design = given;
  const std::filesystem::path base = absolute_path(folder);
  map_paths(design, [&](const std::filesystem::path& file) {
    const std::filesystem::path whole = absolute_path(file);
    const std::filesystem::path inside = whole.lexically_relative(base);
    return inside.empty() || *inside.begin() == ".." ? whole : inside;
  });
  std::string text = "# Reproduces the experiment: rubato compare --config FILE\n";
  for (const RunOption& option : run_options()) {
    const auto value = option.text(design.base);
    if (!value || is_axis(design, option.name)) continue;
    text += fmt::format("{} = {}\n", option.name, toml_value(option, *value));
  }
  return text + axes_text(design) + compare_text(design);
}

}  // namespace rubato
