#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace rubato::app {

/// Formats 12000 as "12,000"; `value` must not be negative.
[[nodiscard]] inline std::string grouped(std::int64_t value) {
  std::string digits = fmt::to_string(value);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

}  // namespace rubato::app
