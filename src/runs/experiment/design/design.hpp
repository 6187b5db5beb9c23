#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/parse.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "runs/config/run_option.hpp"
#include "value_list.hpp"

namespace rubato {

/// The amount that every run of an experiment may spend.
struct RunBudget {
  /// Name of a row of budget_kinds(); "epochs" if the runs' own --epochs is the only limit.
  std::string kind = "epochs";
  /// Amount in the form that the option takes; empty if the runs' own --epochs is the only limit.
  std::string amount{};

  friend bool operator==(const RunBudget&, const RunBudget&) = default;
};

/// A kind of budget, and the option that ends a run when it is spent.
struct RunBudgetKind {
  std::string_view name;
  std::string_view help;
  std::string_view option;
  /// Further settings that the option depends on, such as "clock=virtual"; empty if there are none.
  std::string_view needs;
  /// Unit for people: "4 epochs", "2.5 virtual hours".
  std::string_view unit;
};
[[nodiscard]] std::span<const RunBudgetKind> budget_kinds();
/// Finds a kind by its name. Throws Error for an unknown name, with the nearest one.
[[nodiscard]] const RunBudgetKind& budget_kind(std::string_view name);

/// Parses text such as "epochs=4". Throws Error for another form, an unknown kind, and an amount
/// that the option does not accept.
[[nodiscard]] RunBudget parse_budget(const std::string& text);

/// The limit of epochs for a run whose budget is of another kind, unless --epochs sets one: so
/// large that the budget alone ends the run.
inline constexpr std::string_view kUnboundedEpochs = "1000000";

/// Sets the options that give a run this budget.
void apply_budget(const RunBudget& budget, RunConfiguration& configuration);

/// The budget in words: "4 epochs".
[[nodiscard]] std::string describe(const RunBudget& budget);

/// An option that takes several values.
struct Axis {
  std::string option;
  /// Distinct values, at least one, in the form that RunOption::set() takes.
  std::vector<std::string> values;

  friend bool operator==(const Axis&, const Axis&) = default;
};

/// An option whose best value is searched for before the experiment and then used by all runs.
struct Tuning {
  std::string option;
  /// The first candidates, in the form that RunOption::set() takes: at least two, or none for a
  /// search from the usual learning rate of the optimizer. next_values() has the others.
  std::vector<std::string> values{};
  /// Whether there are no others.
  bool is_closed = false;

  [[nodiscard]] bool is_search() const { return values.empty(); }

  friend bool operator==(const Tuning&, const Tuning&) = default;
};

/// The runs whose best value tuning looks for.
enum class TuneFor {
  baseline,  ///< those of the baseline of each setting, for all that are compared with it
  each,      ///< those of each combination, for itself
};
inline constexpr std::array<Choice<TuneFor>, 2> kTuneFor{
    {{TuneFor::baseline, "baseline"}, {TuneFor::each, "each"}}};

/// The deficit that a choice may have and still count as non-inferior.
struct Margin {
  /// Points of accuracy, or test loss. Empty for one standard deviation of the baseline's final
  /// values over the seeds.
  std::optional<double> amount{};

  friend bool operator==(const Margin&, const Margin&) = default;
};
/// Parses "baseline" or a number above 0. Throws Error for other text.
[[nodiscard]] Margin parse_margin(const std::string& text);
/// The text that parse_margin() reads.
[[nodiscard]] std::string text_of(const Margin& margin);

/// An experiment: the runs of all combinations of the axes' values, a baseline, and the options
/// that all runs share.
struct Design {
  /// The options that no axis sets. The defaults differ from a run's where RunOption::in_experiment
  /// says so.
  RunConfiguration base = default_base();
  /// The options that were set for this design, axes or not.
  GivenOptions given{};
  /// Axes in the order of the table of options, with the seed last.
  std::vector<Axis> axes{};
  RunBudget budget{};
  /// Options of the baseline's runs, in addition to the axes other than trace, rule and seed.
  /// Unless set here, the trace of the baseline is constant at the reference batch size, and its
  /// rule is constant.
  std::vector<Assigned> baseline{};
  std::optional<Tuning> tuning{};
  /// Number of seeds that the tuning uses; they are none of those that are compared, so that a
  /// value that luck has chosen is not compared by the same luck.
  std::int64_t tuning_seeds = 2;
  TuneFor tune_for = TuneFor::baseline;
  /// The comparison is repeated at all powers of two times the learning rate, from one part in
  /// `rates` to `rates` times; a power of two, 1 for no repetition.
  std::int64_t rates = 1;
  /// Test accuracy to be reached, in percent; for a model without accuracy, the test loss.
  std::optional<double> target{};
  /// The margin of tests of non-inferiority; without one there are no such tests.
  std::optional<Margin> margin{};

  [[nodiscard]] static RunConfiguration default_base();
  friend bool operator==(const Design&, const Design&) = default;
};

// The options that have a special role in a design.
inline constexpr std::string_view kTraceOption = "trace";
inline constexpr std::string_view kRuleOption = "rule";
inline constexpr std::string_view kSeedOption = "seed";
inline constexpr std::string_view kFromOption = "from";
/// The option that is searched for.
inline constexpr std::string_view kRateOption = "lr";

/// The limits that end the runs: the budget, and the options of the same kinds that are not axes.
[[nodiscard]] std::vector<RunBudget> limits_of(const Design& design);

/// Sets the values of the option, which becomes an axis if there are several; earlier values are
/// replaced. Throws Error for a value that is listed twice.
void set_values(Design& design, std::string_view option, std::vector<std::string> values);

/// The values of an option in the design: one, unless it is an axis. An option that is not set has
/// an empty text.
[[nodiscard]] std::vector<std::string> values_of(const Design& design, std::string_view option);
[[nodiscard]] bool is_axis(const Design& design, std::string_view option);

// Both parsers also know the names in `own`.

/// Parses text such as "lr=0.01,0.02,0.05", the same with ",only" for a list that is closed, or
/// "lr" for a search. Throws Error for another form, an unknown option, a value that the option
/// does not accept, and a single value.
[[nodiscard]] Tuning parse_tuning(const std::string& text, const Extensions& own = {});
/// The text that parse_tuning() reads.
[[nodiscard]] std::string text_of(const Tuning& tuning);
/// Makes a design search for the learning rate that neither tunes anything nor says the rate: as an
/// option, as an axis, or for the baseline.
void search_rate_by_default(Design& design);
/// Parses text such as "trace=128,rule=constant". Throws Error for another form, an unknown option
/// or value, and the seed, which the baseline shares with the runs that it is compared with.
[[nodiscard]] std::vector<Assigned> parse_baseline(const std::string& text,
                                                   const Extensions& own = {});

/// Parses a target such as "92.5", in percent or as a test loss. Throws Error unless it is a number
/// above 0.
[[nodiscard]] double parse_target(const std::string& text);
inline constexpr std::int64_t kMostTuningSeeds = 1000;
/// Parses Design::rates. Throws Error unless it is a power of two from 1 to 1024.
[[nodiscard]] std::int64_t parse_rates(const std::string& text);

/// If the runs of the design are forks (--from), gives the base the options of the run from which
/// they come, except those that were given, and those that have a default of their own in
/// experiments. Does nothing for other designs. Throws Error if there is no such run, or no such
/// step of it; for an option that a fork cannot have; and if there are several runs that differ in
/// an option that was not given.
void begin_with_runs(Design& design);

/// Throws Error for parts of the design that contradict each other.
void require_consistent(const Design& design);

}  // namespace rubato
