#include "run_budget.hpp"

#include <array>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>

#include "runs/config/run_option.hpp"
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
    throw Error(fmt::format("'{}' is more than one budget; accepted: one, such as epochs=4", text));
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

}  // namespace rubato
