#pragma once

#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>

namespace rubato {

/// What `own`, which has a std::function `of_float` and another `of_double`, makes of `arguments`
/// for parameters of type T, float or double: a pointer that is not null. Throws Error where that
/// function is empty or makes nothing; `refusal` begins the message: "reducer x is made for no".
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
