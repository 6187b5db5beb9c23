#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/core/choice.hpp>
#include <rubato/core/error.hpp>
#include <rubato/core/spec.hpp>

namespace rubato {

/// What can be asked for by name: a rule, a schedule, a model.
struct Strategy {
  /// As it is typed; what stands in capitals is the user's to fill in ("mnist:DIR").
  std::string name{};
  /// What it is, in a line or two.
  std::string help{};
  /// Those that it takes, "NAME:KEY=VALUE,KEY=VALUE" (core/spec.hpp).
  std::vector<Argument> arguments{};
};

/// All that one option accepts, or a part of it.
struct Family {
  /// In the plural: "rules".
  std::string name{};
  /// The option that takes one: "--rule".
  std::string option{};
  /// What they are for, in a line or two.
  std::string help{};
  std::vector<Strategy> strategies{};
};

// Every module has one table of its strategies: rows with a `name`, a `help` and what makes them or
// reads their arguments. These functions are all that is done with such tables; they take any range
// of rows.

template <class Table>
concept StrategyTable = requires(const Table& table) {
  { table.begin()->name } -> std::convertible_to<std::string_view>;
  { table.begin()->help } -> std::convertible_to<std::string_view>;
  table.size();
};

/// The strategy of a row: its arguments are those that `read` asks a Spec of that name for.
template <class Read>
[[nodiscard]] Strategy strategy_of(std::string_view name, std::string_view help, const Read& read) {
  Spec spec = Spec::example(name);
  read(spec);
  return {.name = std::string(name), .help = std::string(help), .arguments = spec.arguments()};
}

/// The strategies of a table; `read(row, spec)` reads the arguments of a row.
template <StrategyTable Table, class Read>
[[nodiscard]] std::vector<Strategy> strategies_of(const Table& table, const Read& read) {
  std::vector<Strategy> strategies;
  strategies.reserve(table.size());
  for (const auto& row : table) {
    strategies.push_back(strategy_of(row.name, row.help, [&](Spec& spec) { read(row, spec); }));
  }
  return strategies;
}

/// The names of a table, in its order.
template <StrategyTable Table>
[[nodiscard]] std::vector<std::string_view> row_names(const Table& table) {
  std::vector<std::string_view> names;
  names.reserve(table.size());
  for (const auto& row : table) names.emplace_back(row.name);
  return names;
}

/// The row called `name`. Throws Error where there is none, naming the nearest and all that there
/// are; `kind` says what was to be named ("rule").
template <StrategyTable Table>
[[nodiscard]] const auto& find_row(std::string_view kind, std::string_view name,
                                   const Table& table) {
  for (const auto& row : table) {
    if (row.name == name) return row;
  }
  throw Error(unknown_name_message(kind, name, row_names(table)));
}

}  // namespace rubato
