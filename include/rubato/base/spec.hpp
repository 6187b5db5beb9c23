#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

namespace rubato {

/// What the text of an argument is.
enum class ArgumentKind {
  flag,    ///< "true" or "false"
  whole,   ///< a whole number
  real,    ///< a number
  wholes,  ///< whole numbers with '/' between them
  reals,   ///< numbers with '/' between them
  choice,  ///< one of some names
  text,    ///< any text without a comma
};

inline constexpr std::array<Choice<ArgumentKind>, 7> kArgumentKinds{
    {{ArgumentKind::flag, "flag"},
     {ArgumentKind::whole, "whole"},
     {ArgumentKind::real, "real"},
     {ArgumentKind::wholes, "wholes"},
     {ArgumentKind::reals, "reals"},
     {ArgumentKind::choice, "choice"},
     {ArgumentKind::text, "text"}}};

/// An argument, as whoever reads it describes it: of `fallback`, `unset` and `example` one is not
/// empty.
struct Argument {
  std::string name{};
  ArgumentKind kind = ArgumentKind::real;
  /// What is accepted, in words: "a number greater than 0"; "rel, abs".
  std::string accepted{};
  /// The names that are accepted where it is a choice.
  std::vector<std::string> choices{};
  /// Text that gives the default.
  std::string fallback{};
  /// Where there is no value that is the default: what holds without the argument, in a few words.
  std::string unset{};
  /// Where the argument has to be given: text that is accepted.
  std::string example{};
};

/// In the place of a default: the argument has to be given.
struct Required {
  /// Text that is accepted.
  std::string_view example;
};

/// In the place of a default: the argument may be left out.
struct Unset {
  /// What then holds, in a few words.
  std::string_view meaning;
};

/// A choice by name, with arguments of its own: "cosine" or "cosine:total=40,floor=0.01".
///
/// Whoever knows the choice reads the arguments it takes and then calls finish(), which rejects the
/// ones that nobody read. What is read is described by that alone (arguments()), so arguments are
/// to be read whether they are given or not. All errors name the choice and the argument. Arguments
/// of no choice have an empty name (":core=3,step=100"), and then errors name the argument alone.
class Spec {
 public:
  /// Throws Error for an argument without a name or a value, and for one given twice.
  explicit Spec(std::string_view text);

  /// `name` with those arguments alone that have to be given, as their examples have them.
  [[nodiscard]] static Spec example(std::string_view name);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool has(std::string_view key) const;

  // The value of an argument. Where it is not given: `fallback`, nothing where an Unset is in its
  // place, or an Error where a Required is. All throw Error for a value that is not of the kind or
  // out of its range.

  [[nodiscard]] double real(std::string_view key, double fallback, const RealRange& range);
  [[nodiscard]] double real(std::string_view key, Required required, const RealRange& range);
  [[nodiscard]] std::optional<double> real(std::string_view key, Unset unset,
                                           const RealRange& range);

  /// A whole number from `min` to `max`.
  [[nodiscard]] std::int64_t whole(std::string_view key, std::int64_t fallback, std::int64_t min,
                                   std::int64_t max);
  [[nodiscard]] std::int64_t whole(std::string_view key, Required required, std::int64_t min,
                                   std::int64_t max);
  [[nodiscard]] std::optional<std::int64_t> whole(std::string_view key, Unset unset,
                                                  std::int64_t min, std::int64_t max);

  /// "true" or "false".
  [[nodiscard]] bool flag(std::string_view key, bool fallback);

  /// Numbers with '/' between them, one at least.
  [[nodiscard]] std::vector<double> reals(std::string_view key, Required required,
                                          const RealRange& range);
  [[nodiscard]] std::optional<std::vector<double>> reals(std::string_view key, Unset unset,
                                                         const RealRange& range);
  [[nodiscard]] std::vector<std::int64_t> wholes(std::string_view key,
                                                 const std::vector<std::int64_t>& fallback,
                                                 std::int64_t min, std::int64_t max);

  /// Any text; `accepted` says what it names.
  [[nodiscard]] std::optional<std::string> text(std::string_view key, Unset unset,
                                                std::string_view accepted);

  /// One of `names`, the nearest of which errors name.
  [[nodiscard]] std::string one_of(std::string_view key, std::string_view fallback,
                                   std::span<const std::string_view> names);
  /// The same for the names of an enumeration; the table has to list `fallback`.
  template <class Enum, std::size_t N>
  [[nodiscard]] Enum choice(std::string_view key, Enum fallback,
                            const std::array<Choice<Enum>, N>& choices) {
    return *chosen(read_name(key, {.fallback = std::string(choice_name(choices, fallback))},
                             choice_name_list(choices)),
                   choices);
  }
  template <class Enum, std::size_t N>
  [[nodiscard]] std::optional<Enum> choice(std::string_view key, Unset unset,
                                           const std::array<Choice<Enum>, N>& choices) {
    return chosen(read_name(key, {.unset = std::string(unset.meaning)}, choice_name_list(choices)),
                  choices);
  }

  /// Throws Error where the argument is given: `why` says with what it does nothing, and what is
  /// accepted.
  void refuse(std::string_view key, std::string_view why) const;
  /// Throws Error for an argument that was not read, with the nearest of those that were asked for.
  void finish() const;
  /// Throws Error about the value of an argument: what is wrong with it, and what is accepted.
  [[noreturn]] void reject(std::string_view key, std::string_view message) const;

  /// Those that were asked for, in that order.
  [[nodiscard]] const std::vector<Argument>& arguments() const { return asked_; }

 private:
  struct Given {
    std::string key;
    std::string value;
  };

  // The text of an argument; null where it is not given.
  [[nodiscard]] const std::string* find(std::string_view key) const;
  // Notes the argument, and reads it by `parse`, whose errors come to name it; empty where it is
  // not given.
  template <class Parse>
  [[nodiscard]] auto read(Argument argument, const Parse& parse)
      -> std::optional<decltype(parse(std::string_view()))>;
  // Empty where it is unset.
  [[nodiscard]] std::string read_name(std::string_view key, Argument argument,
                                      std::span<const std::string_view> names);
  template <class Enum, std::size_t N>
  [[nodiscard]] static std::optional<Enum> chosen(std::string_view name,
                                                  const std::array<Choice<Enum>, N>& choices) {
    for (const auto& choice : choices) {
      if (choice.name == name) return choice.value;
    }
    return std::nullopt;
  }
  // The name, before a message.
  [[nodiscard]] std::string place() const;

  std::string name_;
  std::vector<Given> given_;
  std::vector<Argument> asked_;
  // Whether it is example().
  bool example_ = false;
};

// The ranges that most arguments have.
inline constexpr RealRange kAnyReal{-kLargestReal, kLargestReal, true, true, "a number"};
inline constexpr RealRange kPositive{0, kLargestReal, false, true, "a number greater than 0"};
inline constexpr RealRange kNotNegative{0, kLargestReal, true, true, "a number of at least 0"};
inline constexpr RealRange kBelowOne{0, 1, true, false, "a number from 0 to below 1"};
inline constexpr RealRange kShare{0, 1, true, true, "a number from 0 to 1"};

/// What can be asked for by name: a rule, a schedule, a model.
struct Strategy {
  /// As it is typed; what stands in capitals is the user's to fill in ("mnist:DIR").
  std::string name{};
  /// What it is, in a line or two.
  std::string help{};
  /// Those that it takes, "NAME:KEY=VALUE,KEY=VALUE" (base/spec.hpp).
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

/// To be called in a handler of what a maker of the user's own threw: rethrows Errors, and what
/// says that there is no memory, as they are, and anything else as an Error that names the maker.
[[noreturn]] void rethrow_of_maker(std::string_view kind, std::string_view name);

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
    std::optional<Made> made = made_by(*row, spec, setting...);
    spec.finish();
    return made;
  }

  /// Those that were added, with their arguments. Throws what a maker throws without arguments.
  [[nodiscard]] std::vector<Strategy> strategies() const {
    return strategies_of(rows_, [this](const Row& row, Spec& spec) {
      static_cast<void>(made_by(row, spec, Setting{}...));
    });
  }

 private:
  [[nodiscard]] Made made_by(const Row& row, Spec& spec, const Setting&... setting) const {
    try {
      return row.make(spec, setting...);
    } catch (...) {
      rethrow_of_maker(kind_, row.name);
    }
  }

  std::string_view kind_;
  BuiltInNames built_in_;
  std::vector<Row> rows_;
};

}  // namespace rubato
