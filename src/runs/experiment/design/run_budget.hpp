#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/runs/run_configuration.hpp>

namespace rubato {

/// What every run of an experiment may spend.
struct RunBudget {
  /// Of a row of budget_kinds(); "epochs" where the runs' own --epochs is all there is.
  std::string kind = "epochs";
  /// As the option takes it.
  std::string amount{};

  friend bool operator==(const RunBudget&, const RunBudget&) = default;
};

/// A kind of budget, and the option of a run that ends it there.
struct RunBudgetKind {
  std::string_view name;
  std::string_view help;
  std::string_view option;
  /// What else has to be set for it to count, as "clock=virtual"; empty where nothing has.
  std::string_view needs;
  /// "4 epochs", "2.5 virtual hours".
  std::string_view unit;
};
[[nodiscard]] std::span<const RunBudgetKind> budget_kinds();
/// Throws Error for an unknown one, naming the nearest.
[[nodiscard]] const RunBudgetKind& budget_kind(std::string_view name);

/// "epochs=4". Throws Error for another form, an unknown kind, and an amount that its option does
/// not accept.
[[nodiscard]] RunBudget parse_budget(const std::string& text);

/// Epochs that bound a run whose budget is of another kind, unless --epochs says how many: as many
/// as there can be, so that the budget alone ends it.
inline constexpr std::string_view kUnboundedEpochs = "1000000";

/// Sets the options that make it a run's.
void apply_budget(const RunBudget& budget, RunConfiguration& configuration);

/// In words: "4 epochs".
[[nodiscard]] std::string describe(const RunBudget& budget);

}  // namespace rubato
