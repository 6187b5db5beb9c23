#include "timeline.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "clients/app/line/grouped.hpp"

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

}  // namespace rubato::app
