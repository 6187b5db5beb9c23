#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/core/error.hpp>

namespace rubato {

/// The candidate nearest to `word` by edit distance (insert, delete, replace, swap of neighbours),
/// or an empty view when none is near enough to be what was meant.
[[nodiscard]] std::string_view nearest(std::string_view word,
                                       std::span<const std::string_view> candidates);

/// "unknown <kind> 'word'; did you mean 'x'? Accepted: a, b, c". The accepted list is left out when
/// `list_all` is false.
[[nodiscard]] std::string unknown_name_message(std::string_view kind, std::string_view word,
                                               std::span<const std::string_view> candidates,
                                               bool list_all = true);

/// One value of an enumeration and the name by which users know it.
template <class Enum>
struct Choice {
  Enum value;
  std::string_view name;
};

/// The name of `value`; empty when the table does not list it.
template <class Enum, std::size_t N>
[[nodiscard]] constexpr std::string_view choice_name(const std::array<Choice<Enum>, N>& choices,
                                                     Enum value) {
  for (const auto& choice : choices) {
    if (choice.value == value) return choice.name;
  }
  return {};
}

/// All the names, in the order of the table.
template <class Enum, std::size_t N>
[[nodiscard]] constexpr std::array<std::string_view, N> choice_name_list(
    const std::array<Choice<Enum>, N>& choices) {
  std::array<std::string_view, N> names;
  for (std::size_t i = 0; i < N; ++i) names[i] = choices[i].name;
  return names;
}

/// "a|b|c", or with something else between the names.
template <class Enum, std::size_t N>
[[nodiscard]] std::string choice_names(const std::array<Choice<Enum>, N>& choices,
                                       std::string_view between = "|") {
  std::string names;
  for (const auto& choice : choices) {
    names.append(names.empty() ? "" : between).append(choice.name);
  }
  return names;
}

/// The value called `name`. Throws Error, naming the nearest and all accepted names, when there is
/// none; `kind` says what was to be named ("rule", "assignment").
template <class Enum, std::size_t N>
[[nodiscard]] Enum parse_choice(std::string_view kind, std::string_view name,
                                const std::array<Choice<Enum>, N>& choices) {
  for (const auto& choice : choices) {
    if (choice.name == name) return choice.value;
  }
  throw Error(unknown_name_message(kind, name, choice_name_list(choices)));
}

/// "true" or "false". Throws Error for other text.
[[nodiscard]] bool parse_flag(std::string_view text);

}  // namespace rubato
