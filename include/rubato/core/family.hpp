#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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

/// What users add to a family: makers of their own, each under a name that the family's option then
/// takes. A value; copies are independent.
///
/// `Made` may be incomplete where nothing is made or listed.
template <class Made, class... Setting>
class Additions {
 public:
  /// Reads the arguments that it takes, given or not: they are described by that.
  using Maker = std::function<Made(Spec& arguments, const Setting&... setting)>;
  struct Row {
    std::string name;
    std::string help;
    Maker make;
  };
  using BuiltInNames = std::vector<std::string_view> (*)();

  /// `kind` is what one of them is called in messages ("schedule") and outlives it; the built-in
  /// names are taken, those with a path ("csv:FILE") up to their colon.
  Additions(std::string_view kind, BuiltInNames built_in) : kind_(kind), built_in_(built_in) {}

  /// Throws Error where the name is taken, has a letter with a meaning of its own (one of ":,+="
  /// and the blank) or none at all, and where `make` is empty.
  void add(std::string name, Maker make, std::string help = {}) {
    if (name.empty() || name.find_first_of(":,+= ") != std::string::npos) {
      throw Error("'" + name + "' is no name of a " + std::string(kind_) +
                  "; accepted: one without any of ':', ',', '+', '=' and blanks");
    }
    if (!make) {
      throw Error("nothing makes the " + std::string(kind_) + " '" + name +
                  "'; accepted: any maker but an empty one");
    }
    for (const std::string_view taken : names()) {
      if (taken.substr(0, taken.find(':')) == name) {
        throw Error("there is a " + std::string(kind_) + " '" + name + "' already");
      }
    }
    rows_.push_back({.name = std::move(name), .help = std::move(help), .make = std::move(make)});
  }

  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  /// All that the option takes: the built-in names, and then those that were added.
  [[nodiscard]] std::vector<std::string_view> names() const {
    std::vector<std::string_view> all = built_in_();
    for (const Row& row : rows_) all.emplace_back(row.name);
    return all;
  }

  /// The row of that name; null where it is a built-in one. Throws Error for a name that is
  /// neither, naming the nearest of all.
  [[nodiscard]] const Row* find(std::string_view name) const {
    for (const Row& row : rows_) {
      if (row.name == name) return &row;
    }
    const std::vector<std::string_view> all = names();
    for (const std::string_view known : all) {
      if (known.substr(0, known.find(':')) == name) return nullptr;
    }
    throw Error(unknown_name_message(kind_, name, all));
  }

  /// What `text` asks for ("NAME:KEY=VALUE"); empty where its name is a built-in one. Throws Error
  /// as find() does, for arguments that it does not take, and whatever its maker throws.
  [[nodiscard]] std::optional<Made> make(std::string_view text, const Setting&... setting) const {
    Spec spec(text);
    const Row* const row = find(spec.name());
    if (row == nullptr) return std::nullopt;
    std::optional<Made> made = row->make(spec, setting...);
    spec.finish();
    return made;
  }

  /// Those that were added, with their arguments. Throws what a maker throws without arguments.
  [[nodiscard]] std::vector<Strategy> strategies() const {
    return strategies_of(
        rows_, [](const Row& row, Spec& spec) { static_cast<void>(row.make(spec, Setting{}...)); });
  }

 private:
  std::string_view kind_;
  BuiltInNames built_in_;
  std::vector<Row> rows_;
};

}  // namespace rubato
