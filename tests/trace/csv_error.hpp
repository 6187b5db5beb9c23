#pragma once

#include <string>
#include <string_view>

#include <rubato/steps/trace.hpp>

#include "support/error_of.hpp"

namespace rubato::test {

/// What is wrong with that text as the trace t.csv.
inline std::string error_in(std::string_view text) {
  return error_of([&] { return Trace::parse_csv(text, "t.csv"); });
}

}  // namespace rubato::test
