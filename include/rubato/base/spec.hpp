#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

namespace rubato {

/// The kinds of values that arguments have.
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

/// The description of an argument that reading it produces; exactly one of `fallback`, `unset` and
/// `example` is not empty.
struct Argument {
  std::string name{};
  ArgumentKind kind = ArgumentKind::real;
  /// The accepted values in words: "a number greater than 0"; "rel, abs".
  std::string accepted{};
  /// The accepted names, if the argument is a choice.
  std::vector<std::string> choices{};
  /// The default, as text.
  std::string fallback{};
  /// The meaning of leaving out an argument that has no default value, in a few words.
  std::string unset{};
  /// An accepted text, if the argument is required.
  std::string example{};
};

/// Stands instead of a default: the argument is required.
struct Required {
  /// Text that is accepted.
  std::string_view example;
};

/// Stands instead of a default: the argument may be left out.
struct Unset {
  /// The meaning of leaving it out, in a few words.
  std::string_view meaning;
};

/// A choice by name, with arguments of its own: "cosine" or "cosine:total=40,floor=0.01".
///
/// The owner of the choice reads the arguments that it takes and then calls finish(), which rejects
/// arguments that nobody read. Reading an argument also describes it (arguments()), so every
/// argument must be read, given or not. All errors name the choice and the argument. Arguments
/// without a choice have an empty name (":core=3,step=100"); then errors name the argument alone.
class Spec {
 public:
  /// Throws Error for an argument without a name or a value, and for one given twice.
  explicit Spec(std::string_view text);

  /// A Spec of `name` with only its required arguments, set to their examples.
  [[nodiscard]] static Spec example(std::string_view name);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool has(std::string_view key) const;

  // The following functions return the value of an argument. If it is not given, they return
  // `fallback`, or nothing for Unset, or throw Error for Required. All throw Error for a value of
  // the wrong kind or out of range.

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

  /// Numbers separated by '/', at least one.
  [[nodiscard]] std::vector<double> reals(std::string_view key, Required required,
                                          const RealRange& range);
  [[nodiscard]] std::optional<std::vector<double>> reals(std::string_view key, Unset unset,
                                                         const RealRange& range);
  [[nodiscard]] std::vector<std::int64_t> wholes(std::string_view key,
                                                 const std::vector<std::int64_t>& fallback,
                                                 std::int64_t min, std::int64_t max);

  /// Any text; `accepted` says what it names.
  [[nodiscard]] std::string text(std::string_view key, Required required,
                                 std::string_view accepted);
  [[nodiscard]] std::optional<std::string> text(std::string_view key, Unset unset,
                                                std::string_view accepted);

  /// One of `names`; errors suggest the nearest one.
  [[nodiscard]] std::string one_of(std::string_view key, std::string_view fallback,
                                   std::span<const std::string_view> names);
  /// One of the names of an enumeration; the table must list `fallback`.
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

  /// Throws Error if the argument is given: `why` says with what it has no effect, and what is
  /// accepted.
  void refuse(std::string_view key, std::string_view why) const;
  /// Throws Error for an argument that was not read, with the nearest one that was.
  void finish() const;
  /// Throws Error about the value of an argument: what is wrong with it, and what is accepted.
  [[noreturn]] void reject(std::string_view key, std::string_view message) const;

  /// Descriptions of the arguments that were read, in that order.
  [[nodiscard]] const std::vector<Argument>& arguments() const { return asked_; }

 private:
  struct Given {
    std::string key;
    std::string value;
  };

  // The text of an argument; null if it is not given.
  [[nodiscard]] const std::string* find(std::string_view key) const;
  // Records the argument's description and parses its text with `parse`, adding the argument's name
  // to errors; empty if it is not given.
  template <class Parse>
  [[nodiscard]] auto read(Argument argument, const Parse& parse)
      -> std::optional<decltype(parse(std::string_view()))>;
  // The name that was given; empty if the argument is unset.
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
  // The prefix of messages: the names of the choice and of the argument.
  [[nodiscard]] std::string place() const;

  std::string name_;
  std::vector<Given> given_;
  std::vector<Argument> asked_;
  // True for the result of example().
  bool example_ = false;
};

// The ranges of most arguments.
inline constexpr RealRange kAnyReal{-kLargestReal, kLargestReal, true, true, "a number"};
inline constexpr RealRange kPositive{0, kLargestReal, false, true, "a number greater than 0"};
inline constexpr RealRange kNotNegative{0, kLargestReal, true, true, "a number of at least 0"};
inline constexpr RealRange kBelowOne{0, 1, true, false, "a number from 0 to below 1"};
inline constexpr RealRange kShare{0, 1, true, true, "a number from 0 to 1"};

/// A choice that can be asked for by name: a rule, a schedule, a model.
struct Strategy {
  /// The name as it is typed; words in capitals are the user's to fill in ("mnist:DIR").
  std::string name{};
  /// A description in a line or two.
  std::string help{};
  /// The arguments that it takes, "NAME:KEY=VALUE,KEY=VALUE" (base/spec.hpp).
  std::vector<Argument> arguments{};
};

/// The strategies that one option accepts, or some of them.
struct Family {
  /// The name in the plural: "rules".
  std::string name{};
  /// The option that takes a strategy: "--rule".
  std::string option{};
  /// Their purpose, in a line or two.
  std::string help{};
  std::vector<Strategy> strategies{};
};

// Every module has one table of its strategies: rows with a `name`, a `help` and a function that
// makes the strategy or reads its arguments. The functions below are the only code that works on
// such tables; they take any range of rows.

template <class Table>
concept StrategyTable = requires(const Table& table) {
  { table.begin()->name } -> std::convertible_to<std::string_view>;
  { table.begin()->help } -> std::convertible_to<std::string_view>;
  table.size();
};

/// The strategy of a row; its arguments are those that `read` reads from a Spec of that name.
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

/// The row called `name`. Throws Error, with the nearest and all existing names, if there is no
/// such row; `kind` says what was to be named ("rule").
template <StrategyTable Table>
[[nodiscard]] const auto& find_row(std::string_view kind, std::string_view name,
                                   const Table& table) {
  for (const auto& row : table) {
    if (row.name == name) return row;
  }
  throw Error(unknown_name_message(kind, name, row_names(table)));
}

/// A strategy that has been chosen by text, which was read once. It answers questions about the
/// strategy and makes as many instances as are needed, each with a state of its own. Copies are
/// cheap.
template <class T, class... Setting>
class Chosen {
 public:
  using Make = std::function<std::unique_ptr<T>(const Setting&... setting)>;

  /// Chooses a built-in strategy. Throws Error for text that is not accepted.
  template <std::convertible_to<std::string_view> Text>
  Chosen(const Text& text) : Chosen(built_in(text)) {}
  /// Chooses what `make` makes; `names` are those in the text. Throws what `make` throws for the
  /// setting `first`.
  Chosen(std::string_view text, std::vector<std::string> names, Make make, const Setting&... first)
      : text_(text), names_(std::move(names)), make_(std::move(make)), asked_(make_(first...)) {}

  [[nodiscard]] const std::string& text() const { return text_; }
  /// The names in the text, without their arguments.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  /// An instance that is only asked questions.
  const T& operator*() const { return *asked_; }
  const T* operator->() const { return asked_.get(); }
  [[nodiscard]] std::unique_ptr<T> make(const Setting&... setting) const {
    return make_(setting...);
  }

 private:
  [[nodiscard]] static Chosen built_in(std::string_view text);

  std::string text_;
  std::vector<std::string> names_;
  Make make_;
  std::shared_ptr<const T> asked_;
};

/// To be called in a handler of exceptions from a user's maker: rethrows Error and std::bad_alloc
/// unchanged, and anything else as an Error that names the maker.
[[noreturn]] void rethrow_of_maker(std::string_view kind, std::string_view name);

/// Throws Error if a strategy to add has an empty name or one that contains one of ":,+=" or a
/// blank, and if it has no maker.
void require_addable(std::string_view kind, std::string_view name, bool has_maker);

/// Strategies that users add to a family: makers under names that the family's option then accepts.
/// A value type; copies are independent.
///
/// `Made` may be incomplete in code that neither makes nor lists strategies.
template <class Made, class... Setting>
class Additions {
 public:
  /// Reads all arguments that it takes, given or not: reading them describes them.
  using Maker = std::function<Made(Spec& arguments, const Setting&... setting)>;
  struct Row {
    std::string name;
    std::string help;
    Maker make;
  };
  using BuiltInNames = std::vector<std::string_view> (*)();

  /// `kind` is the word for one of them in messages ("schedule") and must outlive the object. The
  /// built-in names are taken; a name with a path ("csv:FILE") is taken up to its colon.
  Additions(std::string_view kind, BuiltInNames built_in) : kind_(kind), built_in_(built_in) {}

  /// Throws Error if the name is taken, empty or contains one of ":,+=" or a blank, and if `make`
  /// is empty.
  void add(std::string name, Maker make, std::string help = {}) {
    require_addable(kind_, name, static_cast<bool>(make));
    for (const std::string_view taken : names()) {
      if (taken.substr(0, taken.find(':')) == name) {
        throw Error("there is a " + std::string(kind_) + " '" + name + "' already");
      }
    }
    rows_.push_back({.name = std::move(name), .help = std::move(help), .make = std::move(make)});
  }

  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  /// All names that the option accepts: the built-in ones, and then those that were added.
  [[nodiscard]] std::vector<std::string_view> names() const {
    std::vector<std::string_view> all = built_in_();
    for (const Row& row : rows_) all.emplace_back(row.name);
    return all;
  }

  /// The row of that name; null for a built-in name. Throws Error for a name that is neither, with
  /// the nearest of all.
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

  /// The object that `text` asks for ("NAME:KEY=VALUE"); empty if its name is a built-in one.
  /// Throws Error as find() does and for unknown arguments, and whatever the maker throws.
  [[nodiscard]] std::optional<Made> make(std::string_view text, const Setting&... setting) const {
    return make(Spec(text), setting...);
  }
  [[nodiscard]] std::optional<Made> make(Spec spec, const Setting&... setting) const {
    const Row* const row = find(spec.name());
    if (row == nullptr) return std::nullopt;
    std::optional<Made> made = made_by(*row, spec, setting...);
    spec.finish();
    return made;
  }

  /// The added strategies, with their arguments. Throws what a maker throws without arguments.
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
