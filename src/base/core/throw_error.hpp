#pragma once

#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

namespace rubato {

/// Throws an Error with a text as of fmt::format().
template <class... Arguments>
[[noreturn]] void throw_error(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  throw Error(fmt::format(text, std::forward<Arguments>(arguments)...));
}

}  // namespace rubato
