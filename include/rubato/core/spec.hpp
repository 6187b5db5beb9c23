#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/core/choice.hpp>
#include <rubato/core/number.hpp>

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

}  // namespace rubato
