#pragma once

#include <string_view>

namespace rubato::detail {

/// Prints the broken invariant and aborts the program.
[[noreturn]] void check_failed(std::string_view condition, std::string_view reason,
                               std::string_view file, int line) noexcept;

}  // namespace rubato::detail

/// Aborts with `reason` if an invariant of the program does not hold, in every build type. It is
/// for failures that only a bug can cause; those that a user or a file can cause throw
/// rubato::Error.
#define RUBATO_CHECK(condition, reason) \
  ((condition) ? void() : ::rubato::detail::check_failed(#condition, reason, __FILE__, __LINE__))
