#include "trace_summary.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/core/tables/text_table.hpp"
#include "base/core/text/or_null.hpp"
#include "clients/app/line/grouped.hpp"

namespace rubato::app {

namespace {

struct TraceNumbers {
  std::int64_t samples = 0;
  std::int64_t fewest = 0;
  std::int64_t most = 0;
  std::int64_t changes = 0;
  // The range of cores; empty if no step gives a number of cores.
  std::optional<std::int64_t> fewest_cores{};
  std::optional<std::int64_t> most_cores{};

  [[nodiscard]] double mean(const Trace& trace) const {
    return static_cast<double>(samples) / static_cast<double>(trace.length());
  }
};

TraceNumbers numbers_of(const Trace& trace) {
  const std::int64_t first = trace.steps().front().batch_size;
  TraceNumbers numbers{.fewest = first, .most = first};
  std::int64_t before = first;
  for (const TraceStep& step : trace.steps()) {
    numbers.samples += step.batch_size;
    numbers.fewest = std::min(numbers.fewest, step.batch_size);
    numbers.most = std::max(numbers.most, step.batch_size);
    if (step.batch_size != before) ++numbers.changes;
    before = step.batch_size;
    if (!step.cores) continue;
    numbers.fewest_cores = std::min(numbers.fewest_cores.value_or(*step.cores), *step.cores);
    numbers.most_cores = std::max(numbers.most_cores.value_or(*step.cores), *step.cores);
  }
  return numbers;
}

std::string range_text(std::int64_t fewest, std::int64_t most) {
  return fewest == most ? grouped(most) : fmt::format("{} to {}", grouped(fewest), grouped(most));
}

// The JSON is valid even if the name of a file is not UTF-8.
std::string dumped(const nlohmann::ordered_json& json) {
  return json_text(json, 2) + '\n';
}

}  // namespace

std::string duration_text(double seconds) {
  struct Unit {
    std::string_view name;
    double seconds;
  };
  constexpr std::array<Unit, 4> kUnits{{{"d", 86400}, {"h", 3600}, {"min", 60}, {"s", 1}}};
  if (seconds < 60) return fmt::format("{} s", seconds);
  std::size_t unit = 0;
  while (seconds < kUnits[unit].seconds) ++unit;
  // The time is rounded to the smaller unit first, so that 119.9 s is 2 min, not 1 min 60 s.
  const double ratio = kUnits[unit].seconds / kUnits[unit + 1].seconds;
  const double smaller = std::round(seconds / kUnits[unit + 1].seconds);
  const double larger = std::floor(smaller / ratio);
  const double rest = smaller - larger * ratio;
  const std::string text = fmt::format("{} {}", larger, kUnits[unit].name);
  return rest == 0 ? text : fmt::format("{} {} {}", text, rest, kUnits[unit + 1].name);
}

std::string summary_text(const Availability& availability, LineWidth width) {
  const AvailabilitySummary summary = summary_of(availability);
  std::string length = duration_text(availability.length());
  if (availability.sample_gap()) {
    length += fmt::format(", a sample every {}", duration_text(*availability.sample_gap()));
  }
  std::string at_zero = "never";
  if (summary.share_at_zero > 0) {
    at_zero = fmt::format("{:.1f} % of the time, {} at the longest", 100 * summary.share_at_zero,
                          duration_text(summary.longest_at_zero));
  }
  TextTable table({Column::left, Column::left});
  table.add({"availability", availability.source()});
  table.add({"length", length});
  table.add({"devices", fmt::format("{}, {:.1f} on average",
                                    range_text(summary.fewest, summary.most), summary.mean)});
  table.add({"changes", fmt::format("{}, {:.1f} per hour", grouped(summary.changes),
                                    summary.changes_per_hour)});
  table.add({"at zero", at_zero});
  return table.text(width);
}

std::string summary_text(const Trace& trace, LineWidth width) {
  const TraceNumbers numbers = numbers_of(trace);
  TextTable table({Column::left, Column::left});
  table.add({"trace", trace.source()});
  table.add({"length", fmt::format("{} step{}, {} samples", grouped(trace.length()),
                                   trace.length() == 1 ? "" : "s", grouped(numbers.samples))});
  table.add({"batch", fmt::format("{}, {:.1f} on average", range_text(numbers.fewest, numbers.most),
                                  numbers.mean(trace))});
  if (numbers.fewest_cores) {
    table.add({"cores", range_text(*numbers.fewest_cores, *numbers.most_cores)});
  }
  table.add({"changes", grouped(numbers.changes)});
  if (!trace.scaling().empty()) table.add({"scale", trace.scaling()});
  return table.text(width);
}

std::string summary_json(const Availability& availability) {
  const AvailabilitySummary summary = summary_of(availability);
  return dumped({{"kind", "availability"},
                 {"source", availability.source()},
                 {"length_seconds", availability.length()},
                 {"sample_gap_seconds", or_null(availability.sample_gap())},
                 {"fewest", summary.fewest},
                 {"most", summary.most},
                 {"mean", summary.mean},
                 {"changes", summary.changes},
                 {"changes_per_hour", summary.changes_per_hour},
                 {"share_at_zero", summary.share_at_zero},
                 {"longest_at_zero_seconds", summary.longest_at_zero}});
}

std::string summary_json(const Trace& trace) {
  const TraceNumbers numbers = numbers_of(trace);
  return dumped({{"kind", "trace"},
                 {"source", trace.source()},
                 {"steps", trace.length()},
                 {"samples", numbers.samples},
                 {"fewest", numbers.fewest},
                 {"most", numbers.most},
                 {"mean", numbers.mean(trace)},
                 {"changes", numbers.changes},
                 {"fewest_cores", or_null(numbers.fewest_cores)},
                 {"most_cores", or_null(numbers.most_cores)}});
}

}  // namespace rubato::app
