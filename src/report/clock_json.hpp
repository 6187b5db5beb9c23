#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <rubato/plan/clock_time.hpp>

#include "report/record_numbers.hpp"

namespace rubato {

/// What a clock of modelled time shows, as records have it.
[[nodiscard]] inline nlohmann::ordered_json clock_json(const ClockTime& time) {
  nlohmann::ordered_json json;
  each_number(time, [&](std::string_view name, auto value) { json[std::string(name)] = value; });
  return json;
}

}  // namespace rubato
