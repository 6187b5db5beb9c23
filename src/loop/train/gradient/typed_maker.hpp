#pragma once

#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>

namespace rubato {

/// Calls `own.of_float` or `own.of_double`, for parameters of type T, and returns the pointer that
/// it makes, which is not null. Throws Error if that function is empty or returns null; `refusal`
/// begins the message: "reducer x is made for no".
template <class T, class Own, class... Arguments>
[[nodiscard]] auto make_typed(const Own& own, std::string_view refusal, Arguments&... arguments) {
  const auto& make = [&]() -> const auto& {
    if constexpr (std::is_same_v<T, float>) {
      return own.of_float;
    } else {
      return own.of_double;
    }
  }
  ();
  auto made = make ? make(arguments...) : nullptr;
  if (made == nullptr) {
    throw Error(fmt::format("{} parameters of type {}", refusal, name_of(element_type_of<T>())));
  }
  return made;
}

}  // namespace rubato
