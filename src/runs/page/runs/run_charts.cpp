#include "run_charts.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "figures.hpp"
#include "runs/page/thinned/buckets_json.hpp"
#include "time_figures.hpp"

namespace rubato::page {

namespace {

using Paths = std::set<std::pair<CurveOf, std::string>>;

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
        numbers[curve.path] = numbers_json(buckets, curve.path, figure.factor);
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
  Json json{{"type", "lines"},       {"title", figure.title},  {"unit", figure.unit},
            {"help", figure.help},   {"size", figure.is_size}, {"whole", figure.is_whole},
            {"marks", figure.marks}, {"curves", Json::array()}};
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
    if (section.title == "Batch and cores" && runs.size() <= kMostMaps) {
      for (const ThinnedRun& run : runs) {
        if (run.substeps.has_differences()) {
          shown["figures"].push_back(map_json(run, runs.size() > 1));
        }
      }
    }
    if (section.title == "Where the time went") {
      for (Json& figure : time_figures(runs)) shown["figures"].push_back(std::move(figure));
      if (runs.size() <= kMostMaps) add_steps(runs, shown["figures"]);
    }
    if (!shown["figures"].empty()) json["sections"].push_back(std::move(shown));
  }
  return json;
}

}  // namespace rubato::page
