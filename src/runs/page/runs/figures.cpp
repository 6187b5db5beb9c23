#include "figures.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "runs/report/report_schemas.hpp"

namespace rubato::page {

namespace {

// Maximum number of figures of each kind for names that the runs define.
constexpr std::size_t kMostOfOwnNames = 24;

// All figures that a page may show.
std::vector<FigureSection> all_figures() {
  constexpr auto kSteps = CurveOf::steps;
  constexpr auto kEpochs = CurveOf::epochs;
  const std::vector<std::string_view> lost_cores{kFault, kRestart, kFewerCores};
  return {
      {"Learning",
       {{.title = "Loss",
         .curves = {{kSteps, "loss", "training, each step"}, {kEpochs, "test_loss", "test"}},
         .marks = {kDiverged}},
        {.title = "Test accuracy",
         .curves = {{kEpochs, "test_accuracy", "accuracy"},
                    {kEpochs, "test_top_k_accuracy", "top-k accuracy"}}},
        {.title = "Mean squared error", .curves = {{kEpochs, "test_mse"}}},
        {.title = "Perplexity", .curves = {{kEpochs, "test_perplexity"}}}}},
      {"Batch and cores",
       {{.title = "Batch size",
         .curves = {{kSteps, "batch"}},
         .is_size = true,
         .marks = lost_cores},
        {.title = "Cores",
         .curves = {{kSteps, "cores"}},
         .is_size = true,
         .marks = {kFault, kRestart, kFewerCores, kHosts}}}},
      {"Rate, gain and noise",
       {{.title = "Learning rate", .curves = {{kSteps, "lr"}}},
        {.title = "Gain",
         .curves = {{kSteps, "gain", "of the rule"}, {kSteps, "measured_gain", "as in AdaScale"}}},
        {.title = "Gradient noise scale", .curves = {{kSteps, "noise_scale"}}},
        {.title = "Gradient norm", .curves = {{kSteps, "gradient_norm"}}},
        {.title = "Loss scale", .curves = {{kSteps, "loss_scale"}}}}},
      {"Where the time went",
       {{.title = "Time of a step",
         .curves = {{kSteps, "seconds.wall", "the step"},
                    {kSteps, "seconds.exchange", "of it: exchange between hosts"}},
         .marks = {kFault, kRestart, kCheckpoint}}}}};
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

void describe(LineFigure& figure, const std::vector<RecordInfo>& records) {
  const Curve& first = figure.curves.front();
  const std::string_view record = first.of == CurveOf::steps ? "step" : "epoch";
  const auto info = std::ranges::find(records, record, &RecordInfo::name);
  for (const ColumnInfo& column : info->columns) {
    if (json_path(column) != first.path) continue;
    const bool says_more = column.help.size() > figure.title.size() + 4;
    if (says_more) figure.help = column.help;
    figure.unit = column.unit;
    figure.is_whole = column.type == ColumnType::whole;
    if (column.unit == kShareUnit) {
      figure.unit = "%";
      figure.factor = 100;
    }
  }
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
  const std::vector<RecordInfo> records = record_infos();
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
      for (LineFigure& one : runs.size() > 1 ? figures_of_curves(figure) : std::vector{figure}) {
        describe(one, records);
        shown.push_back(std::move(one));
      }
    }
    section.figures = std::move(shown);
  }
  return sections;
}

}  // namespace rubato::page
