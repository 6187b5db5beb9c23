#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/runs/run_configuration.hpp>

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

}  // namespace rubato
