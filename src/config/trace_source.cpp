#include "config/trace_source.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include <rubato/core/choice.hpp>
#include <rubato/core/error.hpp>
#include <rubato/core/family.hpp>
#include <rubato/core/number.hpp>

namespace rubato {

namespace {

constexpr std::string_view kElastic = "elastic";

struct TraceRow {
  std::string_view name;
  std::string_view help;
};

constexpr std::array<TraceRow, 3> kTraces{
    {{"FILE.csv",
      "a file with the header 'step,batchsize' or 'step,batchsize,cores' and a row for each step"},
     {"N", "N samples at every step"},
     {kElastic, "the built-in trace, again and again"}}};

}  // namespace

std::vector<Strategy> trace_sources() {
  return strategies_of(kTraces, [](const TraceRow&, Spec&) {});
}

std::vector<std::string_view> trace_names() {
  return row_names(kTraces);
}

std::optional<std::filesystem::path> trace_file(const std::string& spec) {
  if (spec == kElastic || is_number(spec)) return std::nullopt;
  return spec;
}

CoreRange cores_of(const Trace& trace, std::int64_t otherwise) {
  CoreRange range{.fewest = kMaxCores, .most = 1};
  for (const TraceStep& step : trace.steps()) {
    const std::int64_t cores = step.cores.value_or(otherwise);
    range.fewest = std::min(range.fewest, cores);
    range.most = std::max(range.most, cores);
    range.all_said = range.all_said && step.cores.has_value();
  }
  return range;
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

}  // namespace rubato
