// Trace::parse_csv(): refuses a text with an Error, or reads it; what it has read it reads again.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <rubato/base/error.hpp>
#include <rubato/steps/trace.hpp>

#include "base/core/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using rubato::Trace;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Trace trace = Trace::parse_csv(text, "trace.csv");
    RUBATO_CHECK(Trace::parse_csv(trace.to_csv(), "again.csv").steps() == trace.steps(),
                 "a trace is written as it is read");
    RUBATO_CHECK(trace.at(rubato::StepIndex{trace.length() - 1}).has_value(), "its rows are there");
    static_cast<void>(trace.where(rubato::StepIndex{trace.length() - 1}));
  } catch (const rubato::Error&) {
    // As it should be.
  }
  return 0;
}
