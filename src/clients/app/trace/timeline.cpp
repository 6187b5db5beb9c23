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
  // Up to so many seconds it is the one to take.
  double longest;
};

constexpr std::array<TimeUnit, 4> kTimeUnits{
    {{"seconds", 1, 300},
     {"minutes", 60, 3 * 3600},
     {"hours", 3600, 96 * 3600},
     {"days", 86400, std::numeric_limits<double>::infinity()}}};

constexpr int kPlotRows = 12;
// So many columns for a number below the axis.
constexpr std::size_t kTickColumns = 10;

// The characters of a plot.
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

// The row of labels below the axis, each centred below its tick where there is room.
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

// Below the axis; there are no halves of steps.
std::vector<double> ticks_of(const Timeline& timeline, int count) {
  std::vector<double> ticks = ticks_to(timeline.end, count);
  if (timeline.whole) {
    std::erase_if(ticks, [](double tick) { return tick != std::floor(tick); });
  }
  return ticks;
}

// Up to so many changes a plot has every one of them.
constexpr std::size_t kMostDrawn = 4000;

// Characters that XML has, in a text that may come from anywhere.
std::string xml_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else {
      escaped += byte < 0x20 || byte >= 0x7F ? '?' : c;
    }
  }
  return escaped;
}

// Where things are in the image, in pixels.
struct Frame {
  double left = 64;
  double top = 40;
  double width = 780;
  double height = 240;
  double end = 1;
  double most = 1;

  [[nodiscard]] double x(double at) const { return left + width * at / end; }
  [[nodiscard]] double y(double value) const { return top + height * (1 - value / most); }
};

// The line from change to change; or, where there are more of them than pixels, through the least
// and the largest value of each part.
std::string svg_path(const Timeline& timeline, const Frame& frame) {
  std::string path;
  const auto put = [&](char command, double value) {
    path += fmt::format("{}{:.2f}", command, value);
  };
  const auto& changes = timeline.changes;
  path = fmt::format("M{:.2f},{:.2f}", frame.x(0),
                     frame.y(static_cast<double>(changes.front().value)));
  if (changes.size() <= kMostDrawn) {
    for (std::size_t i = 1; i < changes.size(); ++i) {
      put('H', frame.x(changes[i].at));
      put('V', frame.y(static_cast<double>(changes[i].value)));
    }
    put('H', frame.x(timeline.end));
    return path;
  }
  const int parts = static_cast<int>(frame.width) * 2;
  int part = 0;
  for (const auto& [least, largest] : extremes_of(timeline, parts)) {
    put('V', frame.y(static_cast<double>(least)));
    put('V', frame.y(static_cast<double>(largest)));
    put('H', frame.x(timeline.end * ++part / parts));
  }
  return path;
}

}  // namespace

Timeline timeline_of(const Availability& availability) {
  const auto* unit = std::find_if(
      kTimeUnits.begin(), kTimeUnits.end(),
      [&](const TimeUnit& candidate) { return availability.length() <= candidate.longest; });
  Timeline timeline{.title = availability.source(),
                    .across = std::string(unit->name),
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
  Timeline timeline{.title = trace.source(),
                    .across = "steps",
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

std::vector<double> ticks_to(double most, int count) {
  double step = std::pow(10, std::floor(std::log10(most / count)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (most / (step * factor) <= count) {
      step *= factor;
      break;
    }
  }
  std::vector<double> ticks;
  // Rounded to what the step is a multiple of: 0.3, not 0.30000000000000004.
  for (int i = 0; i * step <= most * (1 + 1e-9); ++i) {
    ticks.push_back(step < 1 ? std::round(i * step * 1e6) / 1e6 : i * step);
  }
  return ticks;
}

std::string text_plot(const Timeline& timeline, bool utf8, LineWidth width) {
  const PlotStyle& style = utf8 ? kUtf8 : kAscii;
  const std::int64_t largest = largest_of(timeline);
  const std::size_t margin = grouped(largest).size() + 1;
  // A plot has some columns, whatever its numbers take.
  const std::size_t columns = std::max(width.prose(), margin + 1 + kTickColumns) - margin - 1;
  const std::vector<Extremes> extremes = extremes_of(timeline, static_cast<int>(columns));
  bool parts = false;
  std::string text;
  for (int row = kPlotRows; row > 0; --row) {
    // The middle row says the middle only where that is a whole number.
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
    // Without blanks at the end.
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

std::string svg_plot(const Timeline& timeline) {
  Frame frame;
  frame.end = timeline.end;
  std::vector<double> levels = ticks_to(static_cast<double>(largest_of(timeline)), 5);
  // Devices and samples are whole.
  std::erase_if(levels, [](double level) { return level != std::floor(level); });
  const double step = levels.size() > 1 ? levels[1] : 1;
  while (levels.back() < static_cast<double>(largest_of(timeline))) {
    levels.push_back(levels.back() + step);
  }
  frame.most = levels.back();
  std::string svg =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"860\" height=\"340\" viewBox=\"0 0 860 "
      "340\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n"
      "<rect width=\"860\" height=\"340\" fill=\"#fff\"/>\n";
  svg += fmt::format("<text x=\"{}\" y=\"22\" font-size=\"14\">{}</text>\n", frame.left,
                     xml_text(timeline.title));
  for (const double level : levels) {
    svg += fmt::format(
        "<path d=\"M{0},{1:.2f}H{2}\" stroke=\"#ddd\"/><text x=\"{3}\" y=\"{4:.2f}\" "
        "text-anchor=\"end\">{5}</text>\n",
        frame.left, frame.y(level), frame.left + frame.width, frame.left - 8, frame.y(level) + 4,
        grouped(static_cast<std::int64_t>(level)));
  }
  const double bottom = frame.top + frame.height;
  for (const double tick : ticks_of(timeline, 10)) {
    svg += fmt::format(
        "<path d=\"M{0:.2f},{1}v5\" stroke=\"#333\"/><text x=\"{0:.2f}\" y=\"{2}\" "
        "text-anchor=\"middle\">{3}</text>\n",
        frame.x(tick), bottom, bottom + 19, tick);
  }
  const std::string path = svg_path(timeline, frame);
  svg += fmt::format("<path d=\"{}V{}H{}Z\" fill=\"#4c78a8\" fill-opacity=\"0.2\"/>\n", path,
                     bottom, frame.left);
  svg +=
      fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#4c78a8\" stroke-width=\"1.5\"/>\n", path);
  svg += fmt::format("<path d=\"M{0},{1}V{2}H{3}\" fill=\"none\" stroke=\"#333\"/>\n", frame.left,
                     frame.top, bottom, frame.left + frame.width);
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                     frame.left + frame.width / 2, bottom + 42, timeline.across);
  svg += fmt::format(
      "<text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      frame.top + frame.height / 2, timeline.up);
  return svg + "</svg>\n";
}

}  // namespace rubato::app
