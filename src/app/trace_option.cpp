#include "app/trace_option.hpp"

#include <array>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include <rubato/core/choice.hpp>
#include <rubato/core/error.hpp>
#include <rubato/core/number.hpp>

namespace rubato::app {

namespace {

constexpr std::string_view kElastic = "elastic";

}  // namespace

std::optional<std::filesystem::path> trace_file(const std::string& spec) {
  if (spec == kElastic || is_number(spec)) return std::nullopt;
  return spec;
}

Trace load_trace(const std::string& spec, std::optional<TraceEnd> end) {
  if (spec == kElastic) {
    Trace trace = Trace::elastic();
    return end ? Trace(trace.steps(), *end, trace.source()) : trace;
  }
  const std::optional<std::filesystem::path> file = trace_file(spec);
  if (!file) {
    try {
      return Trace::constant(parse_whole(spec, 1, kMaxBatchSize));
    } catch (const Error& error) {
      throw Error(fmt::format("--trace: {}, a CSV file or {}", error.what(), kElastic));
    }
  }
  std::error_code ignored;
  if (!std::filesystem::exists(*file, ignored)) {
    const bool misspelt = !nearest(spec, std::array{kElastic}).empty();
    throw Error(
        fmt::format("--trace: no such file as '{}'; {}accepted: a CSV file with the header "
                    "'step,batchsize[,cores]', a batch size or {}",
                    spec, misspelt ? fmt::format("did you mean '{}'? ", kElastic) : "", kElastic));
  }
  return Trace::read_csv(*file, end.value_or(TraceEnd::error));
}

}  // namespace rubato::app
