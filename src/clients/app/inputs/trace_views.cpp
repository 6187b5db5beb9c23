// timeline_of() turns devices or steps into one step function, from which text_plot() draws. Each
// column of the plot stands for an equal part of the axis, of which only the least and the largest
// value are kept: a cell is full if the whole part reaches the middle of its row, and shaded if
// only some of it does, so that short peaks stay visible. Ticks are multiples of 1, 2 or 5 times a
// power of ten. The summaries as text and as JSON are made from the same numbers, by summary_of()
// for devices and numbers_of() for steps.

#include "trace_views.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/core/text/json.hpp"
#include "base/core/text/output_fields.hpp"
#include "base/core/text/text_table.hpp"
#include "clients/app/line/number_text.hpp"
#include "runs/config/values/trace_source.hpp"

namespace rubato::app {

namespace {

struct TimeUnit {
  std::string_view name;
  double seconds;
  // The unit is used for times of up to this many seconds.
  double longest;
};

constexpr std::array<TimeUnit, 4> kTimeUnits{
    {{"seconds", 1, 300},
     {"minutes", 60, 3 * 3600},
     {"hours", 3600, 96 * 3600},
     {"days", 86400, std::numeric_limits<double>::infinity()}}};

constexpr int kPlotRows = 12;
// The columns for each number below the axis.
constexpr std::size_t kTickColumns = 10;

// The characters that a plot is drawn with.
struct PlotStyle {
  std::string_view all;
  std::string_view part;
  std::string_view side;
  std::string_view corner;
  std::string_view floor;
  std::string_view tick;
};
constexpr PlotStyle kAscii{"#", ":", "|", "+", "-", "+"};
constexpr PlotStyle kUtf8{"█", "░", "│", "└", "─", "┴"};

std::int64_t largest_of(const Timeline& timeline) {
  std::int64_t largest = 1;
  for (const Timeline::Change& change : timeline.changes) {
    largest = std::max(largest, change.value);
  }
  return largest;
}

// The least and the largest value within a part of a timeline.
struct Extremes {
  std::int64_t least = 0;
  std::int64_t largest = 0;
};

// Returns the extremes of each of `parts` parts of equal length.
std::vector<Extremes> extremes_of(const Timeline& timeline, int parts) {
  std::vector<Extremes> extremes;
  extremes.reserve(static_cast<std::size_t>(parts));
  const auto& changes = timeline.changes;
  std::size_t next = 0;
  std::int64_t value = 0;
  for (int part = 0; part < parts; ++part) {
    const double begin = timeline.end * part / parts;
    const double end = timeline.end * (part + 1) / parts;
    while (next < changes.size() && changes[next].at <= begin) value = changes[next++].value;
    Extremes here{value, value};
    for (; next < changes.size() && changes[next].at < end; ++next) {
      value = changes[next].value;
      here = {std::min(here.least, value), std::max(here.largest, value)};
    }
    extremes.push_back(here);
  }
  return extremes;
}

// Returns about `count` round numbers from 0 up to `most`, which must be above 0.
std::vector<double> ticks_to(double most, int count) {
  double step = std::pow(10, std::floor(std::log10(most / count)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (most / (step * factor) <= count) {
      step *= factor;
      break;
    }
  }
  std::vector<double> ticks;
  // Fractions are rounded to six decimals: 0.3, not 0.30000000000000004.
  for (int i = 0; i * step <= most * (1 + 1e-9); ++i) {
    ticks.push_back(step < 1 ? std::round(i * step * 1e6) / 1e6 : i * step);
  }
  return ticks;
}

// The row of labels below the axis, each centred below its tick if there is room.
std::string tick_labels(const Timeline& timeline, const std::vector<double>& ticks,
                        std::size_t margin, std::size_t columns) {
  std::string labels(margin, ' ');
  for (const double tick : ticks) {
    const std::string label = fmt::format("{}", tick);
    const auto column =
        margin + static_cast<std::size_t>(tick / timeline.end * static_cast<double>(columns));
    const std::size_t half = label.size() / 2;
    const std::size_t begin = column < half ? 0 : column - half;
    if (begin + label.size() > margin + columns) break;
    if (begin < labels.size() && begin > margin) continue;
    labels.resize(std::max(begin, labels.size()), ' ');
    labels.replace(begin, std::string::npos, label);
  }
  return labels;
}

// The ticks of the axis, without fractions if the timeline counts whole things.
std::vector<double> ticks_of(const Timeline& timeline, int count) {
  std::vector<double> ticks = ticks_to(timeline.end, count);
  if (timeline.whole) {
    std::erase_if(ticks, [](double tick) { return tick != std::floor(tick); });
  }
  return ticks;
}

}  // namespace

Timeline timeline_of(const Availability& availability) {
  const auto* unit = std::find_if(
      kTimeUnits.begin(), kTimeUnits.end(),
      [&](const TimeUnit& candidate) { return availability.length() <= candidate.longest; });
  Timeline timeline{.across = std::string(unit->name),
                    .up = "devices",
                    .changes = {},
                    .end = availability.length() / unit->seconds};
  for (const AvailabilityChange& change : availability.changes()) {
    if (change.seconds == availability.length()) continue;
    timeline.changes.push_back({.at = change.seconds / unit->seconds, .value = change.devices});
  }
  return timeline;
}

Timeline timeline_of(const Trace& trace) {
  Timeline timeline{.across = "steps",
                    .up = "samples in a step",
                    .changes = {},
                    .end = static_cast<double>(trace.length()),
                    .whole = true};
  double at = 0;
  for (const TraceStep& step : trace.steps()) {
    if (timeline.changes.empty() || timeline.changes.back().value != step.batch_size) {
      timeline.changes.push_back({.at = at, .value = step.batch_size});
    }
    ++at;
  }
  return timeline;
}

std::string text_plot(const Timeline& timeline, bool utf8, LineWidth width) {
  const PlotStyle& style = utf8 ? kUtf8 : kAscii;
  const std::int64_t largest = largest_of(timeline);
  const std::size_t margin = grouped(largest).size() + 1;
  // The plot keeps a minimal width, even if its numbers are wide.
  const std::size_t columns = std::max(width.prose(), margin + 1 + kTickColumns) - margin - 1;
  const std::vector<Extremes> extremes = extremes_of(timeline, static_cast<int>(columns));
  bool parts = false;
  std::string text;
  for (int row = kPlotRows; row > 0; --row) {
    // The middle row has a label only if half of the largest value is a whole number.
    const bool middle = row == kPlotRows / 2 && largest % 2 == 0;
    const std::int64_t label = row == kPlotRows ? largest : middle ? largest / 2 : -1;
    std::string line = fmt::format("{:>{}}{}", label < 0 ? "" : grouped(label), margin, style.side);
    std::size_t end = line.size();
    const double level = static_cast<double>(largest) * (row - 0.5) / kPlotRows;
    for (const auto& [least, most] : extremes) {
      const bool all = static_cast<double>(least) >= level;
      const bool part = !all && static_cast<double>(most) >= level;
      line += all ? style.all : part ? style.part : " ";
      if (all || part) end = line.size();
      parts = parts || part;
    }
    // Blanks at the end of the line are cut off.
    text += line.substr(0, end) + '\n';
  }
  const std::vector<double> ticks =
      ticks_of(timeline, static_cast<int>(width.prose() / kTickColumns));
  std::vector<bool> ticked(columns);
  for (const double tick : ticks) {
    const auto column =
        static_cast<std::size_t>(tick / timeline.end * static_cast<double>(columns));
    if (column > 0 && column < columns) ticked[column] = true;
  }
  text += fmt::format("{:>{}}{}", 0, margin, style.corner);
  for (std::size_t i = 0; i < columns; ++i) text += ticked[i] ? style.tick : style.floor;
  text += fmt::format("\n{}\n", tick_labels(timeline, ticks, margin + 1, columns));
  std::string legend = fmt::format("{:{}}{} over {}", "", margin + 1, timeline.up, timeline.across);
  if (parts) {
    legend += fmt::format("; {} all of a column's time, {} a part of it", style.all, style.part);
  }
  return text + fitted(legend, width) + '\n';
}

namespace {

struct TraceNumbers {
  std::int64_t samples = 0;
  std::int64_t fewest = 0;
  std::int64_t most = 0;
  double mean = 0;
  std::int64_t changes = 0;
  // The range of cores; empty if no step gives a number of cores.
  std::optional<std::int64_t> fewest_cores{};
  std::optional<std::int64_t> most_cores{};
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
  numbers.mean = static_cast<double>(numbers.samples) / static_cast<double>(trace.length());
  return numbers;
}

std::string range_text(std::int64_t fewest, std::int64_t most) {
  return fewest == most ? grouped(most) : fmt::format("{} to {}", grouped(fewest), grouped(most));
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

std::string prices_text(const PriceSummary& prices) {
  std::string text = fmt::format("{} for a device and hour", prices.lowest);
  if (prices.changes > 0) {
    text = fmt::format("{} to {} for a device and hour, {:.4g} on average, {} change{}",
                       prices.lowest, prices.highest, prices.mean, grouped(prices.changes),
                       prices.changes == 1 ? "" : "s");
  }
  if (prices.hours_without > 0) text += fmt::format(", none for {:.4g} h", prices.hours_without);
  return text;
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
  if (summary.prices) table.add({"prices", prices_text(*summary.prices)});
  const AvailabilityOrigin& origin = availability.origin();
  if (!origin.columns.empty()) table.add({"columns", first_names(origin.columns)});
  if (origin.delay > 0) {
    table.add(
        {"begins", fmt::format("after {}, with its first sample", duration_text(origin.delay))});
  }
  return table.text(width);
}

std::string summary_text(const Trace& trace, LineWidth width) {
  const TraceNumbers numbers = numbers_of(trace);
  TextTable table({Column::left, Column::left});
  table.add({"trace", trace.source()});
  table.add({"length", fmt::format("{} step{}, {} samples", grouped(trace.length()),
                                   trace.length() == 1 ? "" : "s", grouped(numbers.samples))});
  table.add({"batch", fmt::format("{}, {:.1f} on average", range_text(numbers.fewest, numbers.most),
                                  numbers.mean)});
  if (numbers.fewest_cores) {
    table.add({"cores", range_text(*numbers.fewest_cores, *numbers.most_cores)});
  }
  table.add({"changes", grouped(numbers.changes)});
  if (!trace.scaling().empty()) table.add({"scale", trace.scaling()});
  return table.text(width);
}

namespace {

template <class T>
OutputField<T> kind_field(const char* kind) {
  return {"kind", "what it is of", [kind](const T&) { return kind; },
          JsonForm<const char*>{{{"const", kind}},
                                [](const char* text) { return nlohmann::ordered_json(text); }}};
}

JsonForm<Availability> availability_form() {
  const auto of_summary = [](auto member) {
    return [member](const Availability& of) { return summary_of(of).*member; };
  };
  return form_of_object<Availability>(
      {kind_field<Availability>("availability"),
       {"source", "as --trace has it", &Availability::source},
       {"length_seconds", "its length", &Availability::length},
       {"sample_gap_seconds", "between two samples; null where it has none",
        &Availability::sample_gap},
       {"fewest", "the fewest devices", of_summary(&AvailabilitySummary::fewest)},
       {"most", "the most devices", of_summary(&AvailabilitySummary::most)},
       {"mean", "devices, over time", of_summary(&AvailabilitySummary::mean)},
       {"changes", "how often the number of devices changed",
        of_summary(&AvailabilitySummary::changes)},
       {"changes_per_hour", "the same by the hour",
        of_summary(&AvailabilitySummary::changes_per_hour)},
       {"share_at_zero", "share of the time without a device, 0 to 1",
        of_summary(&AvailabilitySummary::share_at_zero)},
       {"longest_at_zero_seconds", "the longest time without a device",
        of_summary(&AvailabilitySummary::longest_at_zero)},
       {"prices", "of a device for an hour; null where it has none",
        of_summary(&AvailabilitySummary::prices),
        form_of_object<PriceSummary>(
            {{"lowest", "the lowest price", &PriceSummary::lowest},
             {"highest", "the highest price", &PriceSummary::highest},
             {"mean", "the price on average, over time", &PriceSummary::mean},
             {"changes", "how often the price changed", &PriceSummary::changes},
             {"hours_without",
              "hours before its first and after its last sample; above 0 only for a zone beside "
              "others",
              &PriceSummary::hours_without}})},
       {"columns",
        "the names of the columns that count; empty where the file has one column of devices, or "
        "none",
        [](const Availability& of) { return of.origin().columns; }},
       {"begins_seconds",
        "when its first sample is; above 0 only for a zone that begins after others",
        [](const Availability& of) { return of.origin().delay; }}});
}

JsonForm<Zones> zones_form() {
  return form_of_object<Zones>(
      {kind_field<Zones>("zones"),
       {"source", "as --trace has it", &Zones::source},
       {"zones", "in their order", &Zones::all,
        form_of_object<Zone>({{"name", "name of the zone", &Zone::name},
                              {"availability", "its devices over time", &Zone::availability,
                               availability_form()}})}});
}

JsonForm<Trace> trace_form() {
  const auto of_numbers = [](auto member) {
    return [member](const Trace& trace) { return numbers_of(trace).*member; };
  };
  return form_of_object<Trace>(
      {kind_field<Trace>("trace"),
       {"source", "as --trace has it", &Trace::source},
       {"steps", "its length", &Trace::length},
       {"samples", "samples of all its steps", of_numbers(&TraceNumbers::samples)},
       {"fewest", "the fewest samples of a step", of_numbers(&TraceNumbers::fewest)},
       {"most", "the most samples of a step", of_numbers(&TraceNumbers::most)},
       {"mean", "samples of a step on average", of_numbers(&TraceNumbers::mean)},
       {"changes", "steps whose batch size differs from that of the step before",
        of_numbers(&TraceNumbers::changes)},
       {"fewest_cores", "of a step; null where the trace has none",
        of_numbers(&TraceNumbers::fewest_cores)},
       {"most_cores", "of a step; null where the trace has none",
        of_numbers(&TraceNumbers::most_cores)}});
}

}  // namespace

std::string summary_json(const Zones& zones) {
  const nlohmann::ordered_json json =
      zones.several() ? zones_form().write(zones) : availability_form().write(zones.only());
  // The JSON is valid even if the name of a file is not UTF-8.
  return json_text(json, 2) + '\n';
}

std::string summary_json(const Trace& trace) {
  return json_text(trace_form().write(trace), 2) + '\n';
}

nlohmann::ordered_json summary_schema() {
  return {{"oneOf", {trace_form().schema, availability_form().schema, zones_form().schema}}};
}

}  // namespace rubato::app
