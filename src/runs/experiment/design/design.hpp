#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/runs/run_configuration.hpp>

#include "run_budget.hpp"
#include "value_list.hpp"

namespace rubato {

/// An option that takes several values.
struct Axis {
  std::string option;
  /// At least one, no two the same, as RunOption::set() takes them.
  std::vector<std::string> values;

  friend bool operator==(const Axis&, const Axis&) = default;
};

/// An option whose best value is looked for before the experiment, and then used by all.
struct Tuning {
  std::string option;
  /// At least two, as RunOption::set() takes them.
  std::vector<std::string> values;

  friend bool operator==(const Tuning&, const Tuning&) = default;
};

/// What an experiment is: the runs of all combinations of the axes' values, a baseline, and what is
/// the same for all.
struct Design {
  /// What no axis sets. The default differs from a run's where RunOption::in_experiment says so.
  RunConfiguration base = default_base();
  /// In the order of the table of options, the seed last.
  std::vector<Axis> axes{};
  RunBudget budget{};
  /// What makes a run one of the baseline, beside the axes that are none of trace, rule and seed;
  /// it has the constant trace of the reference batch and the rule constant where this says nothing
  /// else.
  std::vector<Assigned> baseline{};
  std::optional<Tuning> tuning{};
  /// With so many of the seeds.
  std::int64_t tuning_seeds = 2;
  /// What the test accuracy is to reach, in percent; of a model without one, the test loss.
  std::optional<double> target{};

  [[nodiscard]] static RunConfiguration default_base();
  friend bool operator==(const Design&, const Design&) = default;
};

// The options with a part of their own in a design.
inline constexpr std::string_view kTraceOption = "trace";
inline constexpr std::string_view kRuleOption = "rule";
inline constexpr std::string_view kSeedOption = "seed";

/// What ends the runs: the budget, and the options of the same kind that are no axes.
[[nodiscard]] std::vector<RunBudget> limits_of(const Design& design);

/// Makes the option take these values: an axis where there are several. Whatever it took before is
/// replaced. Throws Error for a value that stands there twice.
void set_values(Design& design, std::string_view option, std::vector<std::string> values);

/// The values that an option takes in the design: one, unless it is an axis. One that is not set is
/// an empty text.
[[nodiscard]] std::vector<std::string> values_of(const Design& design, std::string_view option);
[[nodiscard]] bool is_axis(const Design& design, std::string_view option);

// Both read names by those of `own`, too.

/// "lr=0.01,0.02,0.05". Throws Error for another form, an unknown option, a value that it does not
/// accept, and for a single value.
[[nodiscard]] Tuning parse_tuning(const std::string& text, const Extensions& own = {});
/// "trace=128,rule=constant". Throws Error for another form, an unknown option or value, and the
/// seed, which is that of the runs it is compared with.
[[nodiscard]] std::vector<Assigned> parse_baseline(const std::string& text,
                                                   const Extensions& own = {});

/// "92.5": in percent, or a test loss. Throws Error where it is no number above 0.
[[nodiscard]] double parse_target(const std::string& text);
inline constexpr std::int64_t kMostTuningSeeds = 1000;

/// Throws Error for parts of the design that contradict each other.
void require_consistent(const Design& design);

}  // namespace rubato
