// all_figures() lists what a page may show, by the columns of records (ColumnInfo::figure);
// line_figures() keeps what at least one run has, adds names that the runs define, and takes unit,
// help and factor from the columns. If there are several runs, a figure of several curves becomes
// one for each curve. The JSON has only the numbers that a figure draws. charts_of() adds the maps
// of substeps to the section of the batch, and the times to that of the time.

#include "run_charts.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/core/text/json.hpp"
#include "base/core/vectors.hpp"
#include "buckets.hpp"
#include "runs/report/report_schemas.hpp"

namespace rubato::page {

namespace {

// Maximum number of figures of each kind for names that the runs define.
constexpr std::size_t kMostOfOwnNames = 24;

// Marks in the figures of columns, and the figures whose numbers are sizes.
struct FigureMarks {
  std::string_view title;
  bool is_size = false;
  std::vector<std::string_view> marks{};
};

std::vector<FigureMarks> figure_marks() {
  return {{.title = "Loss", .marks = {kDiverged}},
          {.title = "Batch size", .is_size = true, .marks = {kFault, kRestart, kFewerCores}},
          {.title = "Cores", .is_size = true, .marks = {kFault, kRestart, kFewerCores, kHosts}},
          {.title = "Time of a step", .marks = {kFault, kRestart, kCheckpoint}}};
}

LineFigure figure_of(const std::string& title) {
  for (const auto& [marked, is_size, marks] : figure_marks()) {
    if (marked == title) return {.title = title, .is_size = is_size, .marks = marks};
  }
  return {.title = title};
}

// All figures that a page may show, by the columns of steps and epochs (ColumnInfo::figure).
std::vector<FigureSection> all_figures() {
  std::vector<std::pair<const ColumnInfo*, CurveOf>> columns;
  for (const auto& [record, of] :
       {std::pair{"step", CurveOf::steps}, std::pair{"epoch", CurveOf::epochs}}) {
    for (const ColumnInfo& column : record_info(record).columns) {
      if (!column.figure.title.empty()) columns.emplace_back(&column, of);
    }
  }
  std::ranges::stable_sort(columns, {},
                           [](const auto& column) { return column.first->figure.place; });
  auto sections =
      vector_of(kPageSections, [](const char* title) { return FigureSection{.title = title}; });
  for (const auto& [column, of] : columns) {
    const FigureField& field = column->figure;
    std::vector<LineFigure>& figures =
        std::ranges::find(sections, field.section, &FigureSection::title)->figures;
    auto figure = std::ranges::find(figures, field.title, &LineFigure::title);
    if (figure == figures.end()) figure = figures.insert(figure, figure_of(field.title));
    figure->curves.push_back({of, json_path(*column), field.label, column});
  }
  return sections;
}

// Kinds of curves whose names the runs define, with the prefixes of their paths and of their
// titles.
struct OwnNames {
  CurveOf of;
  std::string_view prefix;
  std::string_view title;
};
constexpr std::array<OwnNames, 4> kOwnNames{
    {{CurveOf::steps, "decision.", "Batch policy: "},
     {CurveOf::steps, "metrics.", "Own metric: "},
     {CurveOf::epochs, "metrics.", "Own metric of epochs: "},
     {CurveOf::steps, "monitor.", "Norm: "}}};

FigureSection own_figures(std::span<const ThinnedRun> runs) {
  FigureSection section{.title = "Other numbers"};
  for (const auto& [of, prefix, title] : kOwnNames) {
    std::set<std::string> names;
    for (const ThinnedRun& run : runs) {
      for (const std::string& name : numbers_of(run, of).names()) {
        if (name.starts_with(prefix) && names.size() < kMostOfOwnNames) names.insert(name);
      }
    }
    for (const std::string& name : names) {
      section.figures.push_back(
          {.title = std::string(title) + name.substr(prefix.size()), .curves = {{of, name}}});
    }
  }
  return section;
}

// Shares are shown in percent.
bool is_share(const LineFigure& figure) {
  return figure.column() != nullptr && figure.column()->unit == kShareUnit;
}

// Splits a figure of several runs into one for each curve, so that dashes only tell runs apart.
std::vector<LineFigure> figures_of_curves(const LineFigure& figure) {
  std::vector<LineFigure> figures;
  for (const Curve& curve : figure.curves) {
    LineFigure one = figure;
    if (!curve.label.empty() && figure.curves.size() > 1) one.title += ": " + curve.label;
    one.curves = {curve};
    figures.push_back(std::move(one));
  }
  return figures;
}

}  // namespace

std::vector<FigureSection> line_figures(std::span<const ThinnedRun> runs) {
  std::vector<FigureSection> sections = all_figures();
  sections.push_back(own_figures(runs));
  const auto is_missing = [&](const Curve& curve) {
    return std::ranges::none_of(
        runs, [&](const ThinnedRun& run) { return numbers_of(run, curve.of).has(curve.path); });
  };
  for (FigureSection& section : sections) {
    std::vector<LineFigure> shown;
    for (LineFigure& figure : section.figures) {
      std::erase_if(figure.curves, is_missing);
      if (figure.curves.empty()) continue;
      if (runs.size() > 1) {
        std::ranges::move(figures_of_curves(figure), std::back_inserter(shown));
      } else {
        shown.push_back(std::move(figure));
      }
    }
    section.figures = std::move(shown);
  }
  return sections;
}

namespace {

struct Part {
  const char* name;
  double value;
};
using Parts = std::vector<Part>;

Parts wall_parts(const ThinnedRun& run) {
  const RunTimes& times = run.times;
  // The time of observers, checkpoints and the start of the program; known only after the run has
  // ended.
  const double rest = number_at(run.summary, "wall_seconds").value_or(0) - times.wall - times.test;
  return {{"gradients", std::max(0.0, times.wall - times.exchange - times.update)},
          {"exchange between hosts", times.exchange},
          {"update", times.update},
          {"evaluation", times.test},
          {"files and the rest", std::max(0.0, rest)}};
}

Parts thread_parts(const ThinnedRun& run) {
  return {{"gathering samples", run.times.data},
          {"forward and backward", run.times.compute},
          {"summing gradients", run.times.reduce}};
}

Parts clock_parts(const ThinnedRun& run) {
  const ModelledTimes& clock = run.clock;
  const Parts others{
      {"lost attempts", clock.lost_hours},     {"repeated steps", clock.redone_hours},
      {"restarts", clock.restart_hours},       {"joining", clock.join_hours},
      {"checkpoints", clock.checkpoint_hours}, {"without devices", clock.idle_hours}};
  double steps = run.last[Axis::hours];
  for (const auto& [name, hours] : others) steps -= hours;
  Parts parts{{"steps", std::max(0.0, steps)}};
  // A chart of one run's few kinds of time needs no legend of the others.
  std::ranges::copy_if(others, std::back_inserter(parts),
                       [](const Part& part) { return part.value > 0; });
  return parts;
}

Json bars(const char* title, const char* unit, const char* help, std::span<const ThinnedRun> runs,
          Parts (*parts_of)(const ThinnedRun&)) {
  Json json{{"type", "bars"}, {"title", title}, {"unit", unit}, {"help", help}};
  json["rows"] = Json::array();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const ThinnedRun& run = runs[i];
    Json parts = Json::array();
    double sum = 0;
    for (const auto& [name, value] : parts_of(run)) {
      parts.push_back({{"name", name}, {"value", chart_number(value)}});
      sum += value;
    }
    if (sum > 0) {
      json["rows"].push_back({{"run", i}, {"label", run.name}, {"parts", std::move(parts)}});
    }
  }
  return json;
}

}  // namespace

std::vector<Json> time_figures(std::span<const ThinnedRun> runs) {
  std::vector<Json> figures{
      bars("Time on this machine", "seconds", "from the first step to the last evaluation", runs,
           wall_parts),
      bars("Time of the threads", "seconds", "in the gradients, all threads together", runs,
           thread_parts),
      bars("Modelled time", "hours", "on the modelled cluster", runs, clock_parts)};
  std::erase_if(figures, [](const Json& figure) { return figure["rows"].empty(); });
  return figures;
}

namespace {

// With more runs, the maps of their cores would take most of the page.
constexpr std::size_t kMostMaps = 6;
// Maximum number of marks of all runs together.
constexpr std::size_t kMostMarksOfRuns = 2000;

Json buckets_json(const ThinnedRun& run, CurveOf of, const std::vector<FigureSection>& sections) {
  const Buckets& buckets = numbers_of(run, of);
  Json json{{"width", buckets.width()}, {"axes", axes_json(buckets)}};
  Json& numbers = json["numbers"] = Json::object();
  for (const FigureSection& section : sections) {
    for (const LineFigure& figure : section.figures) {
      for (const Curve& curve : figure.curves) {
        if (curve.of != of || !buckets.has(curve.path)) continue;
        numbers[curve.path] = numbers_json(buckets, curve.path, is_share(figure) ? 100 : 1);
      }
    }
  }
  return json;
}

Json marks_json(const ThinnedRun& run, std::size_t most) {
  Json json = Json::array();
  for (const Mark& mark : run.marks) {
    if (mark.at[Axis::steps] == 0 || json.size() == most) continue;
    Json at = Json::object();
    for (std::size_t i = 0; i < kAxes; ++i) {
      at[std::string(kAxisRows.at(i).key)] = chart_number(mark.at.values.at(i));
    }
    json.push_back(
        {{"kind", mark.kind}, {"text", mark.text}, {"count", mark.count}, {"at", std::move(at)}});
  }
  return json;
}

Json figure_json(const LineFigure& figure) {
  static const ColumnInfo unknown{.type = ColumnType::real};
  const ColumnInfo& column = figure.column() == nullptr ? unknown : *figure.column();
  // A help that only repeats the title is left out.
  const bool says_more = column.help.size() > figure.title.size() + 4;
  Json json{{"type", "lines"},
            {"title", figure.title},
            {"unit", is_share(figure) ? "%" : column.unit},
            {"help", says_more ? column.help : ""},
            {"size", figure.is_size},
            {"whole", column.type == ColumnType::whole},
            {"marks", figure.marks},
            {"curves", Json::array()}};
  for (const Curve& curve : figure.curves) {
    json["curves"].push_back({{"of", curve.of == CurveOf::steps ? "steps" : "epochs"},
                              {"key", curve.path},
                              {"label", curve.label}});
  }
  return json;
}

Json map_json(const ThinnedRun& run, bool named) {
  const SubstepMap& map = run.substeps;
  Json rows = Json::array();
  for (const auto& row : map.means()) {
    Json& values = rows.emplace_back(Json::array());
    for (const auto& mean : row) values.push_back(mean ? chart_number(*mean) : Json());
  }
  return {{"type", "heat"},
          {"title", named ? "Substeps of each core: " + run.name : "Substeps of each core"},
          {"help", "minibatches that a core computes one after the other in a step"},
          {"steps", map.steps()},
          {"width", map.steps_of_column()},
          {"cores", map.cores()},
          {"stride", map.cores_of_row()},
          {"rows", std::move(rows)}};
}

void add_steps(std::span<const ThinnedRun> runs, Json& figures) {
  for (const ThinnedRun& run : runs) {
    for (Json figure : run.step_figures) {
      if (runs.size() > 1) {
        figure["title"] = fmt::format("{}: {}", figure["title"].get<std::string>(), run.name);
      }
      figures.push_back(std::move(figure));
    }
  }
}

Json section_json(const FigureSection& section) {
  Json json{{"title", section.title}, {"figures", Json::array()}};
  for (const LineFigure& figure : section.figures) json["figures"].push_back(figure_json(figure));
  return json;
}

// The axis of a budget that all runs have, or steps; curves are first drawn against it.
std::string_view axis_of_budgets(std::span<const ThinnedRun> runs) {
  for (const Axis axis : {Axis::hours, Axis::money, Axis::samples}) {
    const std::string_view key = kAxisRows.at(static_cast<std::size_t>(axis)).key;
    const auto has = [key](const ThinnedRun& run) { return run.options.contains(key); };
    if (std::ranges::all_of(runs, has)) return key;
  }
  return kAxisRows.front().key;
}

}  // namespace

Json charts_of(std::span<const ThinnedRun> runs) {
  const std::vector<FigureSection> sections = line_figures(runs);
  Json json{{"axes", axis_rows_json()},
            {"axis", axis_of_budgets(runs)},
            {"marks", kMarks},
            {"runs", Json::array()},
            {"sections", Json::array()}};
  for (const ThinnedRun& run : runs) {
    json["runs"].push_back({{"name", run.name},
                            {"steps", buckets_json(run, CurveOf::steps, sections)},
                            {"epochs", buckets_json(run, CurveOf::epochs, sections)},
                            {"marks", marks_json(run, kMostMarksOfRuns / runs.size())}});
  }
  for (const FigureSection& section : sections) {
    Json shown = section_json(section);
    if (section.title == kBatchSection && runs.size() <= kMostMaps) {
      for (const ThinnedRun& run : runs) {
        if (run.substeps.has_differences()) {
          shown["figures"].push_back(map_json(run, runs.size() > 1));
        }
      }
    }
    if (section.title == kTimeSection) {
      for (Json& figure : time_figures(runs)) shown["figures"].push_back(std::move(figure));
      if (runs.size() <= kMostMaps) add_steps(runs, shown["figures"]);
    }
    if (!shown["figures"].empty()) json["sections"].push_back(std::move(shown));
  }
  if (runs.size() == 1 && !runs.front().whatif_section.is_null()) {
    json["sections"].push_back(runs.front().whatif_section);
  }
  return json;
}

}  // namespace rubato::page
