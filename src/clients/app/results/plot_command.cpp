// A folder becomes curves in three steps: an experiment whose design can be read gives one curve
// for each cell, the mean over its runs, and any other folder one for each run; recorded_curve()
// reads the points from metrics.jsonl; gnuplot_script() writes a script with these data, which
// gnuplot draws (docs/adr/0071-gnuplot-draws.md). Names are shortened to what tells curves apart:
// the last part of a run's path, and the labels that are not the same in all cells. Without --y the
// accuracy is tried first, and then the loss. Runs without the column are named on stderr and left
// out.

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "clients/app/commands.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/drawing.hpp"
#include "clients/app/line/output.hpp"
#include "runs/experiment/answer/rate_curves.hpp"
#include "runs/experiment/conduct/conduct.hpp"
#include "runs/experiment/design/design_file.hpp"
#include "runs/experiment/design/experiment_plan.hpp"
#include "runs/recorded/plot.hpp"
#include "runs/recorded/watched_runs.hpp"

namespace rubato::app {

namespace {

using std::filesystem::path;

// Empty for the learning rate, over which an experiment has scores.
using Across = std::optional<CurveOver>;

constexpr std::array<Choice<Across>, 5> kOver{{{CurveOver::samples, "samples"},
                                               {CurveOver::steps, "steps"},
                                               {CurveOver::hours, "hours"},
                                               {CurveOver::money, "money"},
                                               {std::nullopt, "rate"}}};

struct PlotArguments {
  std::vector<path> folders;
  /// The column to plot; if not given, the accuracy if any run has it, else the loss.
  std::optional<CurveColumn> up;
  Across across = CurveOver::samples;
  std::optional<path> out;
  std::optional<path> script;
};

PlotArguments read_arguments(std::span<const std::string> arguments) {
  PlotArguments read;
  CommandLine line("rubato plot",
                   "Plots the recorded steps or epochs of runs together, in the terminal or as a "
                   "picture. A curve of an experiment is the mean over the seeds of one choice.");
  line.operands(OperandCount::some, "RUN|EXPERIMENT", "the folder of a run, or one with runs in it",
                [&](const std::string& text) { read.folders.emplace_back(text); });
  line.option("y", "NAME",
              "what to plot: a column of steps or epochs that `rubato list records` names",
              "accuracy, or loss where there is none",
              [&](const std::string& text) { read.up = curve_column(text); });
  line.choice("x",
              "the horizontal axis; hours and money are those of modelled time, and rate is the "
              "learning rate, over which experiments have the scores of --rates or of the search",
              "samples", "axis", kOver, read.across);
  line.option("out", "FILE.svg|FILE.png|FILE.pdf",
              "write a picture, instead of plotting in the terminal", "",
              [&](const std::string& text) {
                static_cast<void>(picture_type(text));
                read.out = text;
              });
  line.text("gnuplot", "FILE",
            "write the script that draws the plot, with its data, for `gnuplot FILE`; without "
            "--out, nothing is drawn",
            "", read.script);
  line.footer(
      "Examples:\n"
      "  rubato plot runs/linear runs/root\n"
      "  rubato plot runs/linear --y loss --x steps\n"
      "  rubato plot answer --out accuracy.svg\n"
      "  rubato plot answer --x rate\n"
      "  rubato plot answer --out accuracy.pdf --gnuplot accuracy.gp\n"
      "Exit codes: 2 for a mistake in the options or files, 24 for a picture that\n"
      "cannot be written.");
  line.parse(arguments);
  return read;
}

// One curve of the plot: a run, or runs of an experiment that differ only in the seed.
struct Plotted {
  std::string name;
  std::vector<path> runs;
};

// Names each run by its folder's name alone if no other run has the same.
void shorten_names(std::vector<FoundRun>& runs) {
  std::map<std::string, int> counts;
  const auto own = [](const FoundRun& run) {
    const path folder = run.folder.has_filename() ? run.folder : run.folder.parent_path();
    return printable(folder.filename().string());
  };
  for (const FoundRun& run : runs) ++counts[own(run)];
  for (FoundRun& run : runs) {
    if (counts[own(run)] == 1) run.name = own(run);
  }
}

// The name of a cell consists of the labels that are not the same in all cells.
template <class Cell>
std::string name_of(const Cell& cell, const std::vector<Cell>& cells) {
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < cell.labels.size(); ++i) {
    const bool same = std::ranges::all_of(
        cells, [&](const Cell& other) { return other.labels[i] == cells.front().labels[i]; });
    if (!same) labels.push_back(cell.labels[i]);
  }
  if (cell.is_baseline) labels.emplace_back("(baseline)");
  return printable(fmt::to_string(fmt::join(labels, " ")));
}

// Returns the cells of an experiment whose runs have begun; nothing if its design cannot be read,
// for example because it needs a plug-in.
std::vector<Plotted> cells_of(const path& folder) {
  std::vector<Plotted> cells;
  if (!is_experiment(folder)) return cells;
  try {
    const path file = folder / kDesignFile;
    const ExperimentPlan plan = plan_of(parse_design(read_file(file), file.string()).design);
    const std::vector<FoundRun> found = found_runs(folder);
    for (const PlannedCell& planned : plan.cells) {
      Plotted cell{.name = name_of(planned, plan.cells), .runs = {}};
      for (const std::size_t run : planned.runs) {
        const auto of_it = std::ranges::find(found, plan.runs[run].name, &FoundRun::name);
        if (of_it == found.end() || !is_there(of_it->folder / RunFolder::kMetrics)) continue;
        cell.runs.push_back(of_it->folder);
      }
      if (!cell.runs.empty()) cells.push_back(std::move(cell));
    }
  } catch (const Error&) {
    return {};
  }
  return cells;
}

std::vector<Plotted> plotted_of(const std::vector<path>& folders) {
  std::vector<FoundRun> runs;
  std::vector<Plotted> all;
  for (const path& folder : folders) {
    std::vector<Plotted> cells = cells_of(folder);
    std::ranges::move(cells, std::back_inserter(all));
    if (!cells.empty()) continue;
    const std::vector<FoundRun> found = found_runs(folder);
    if (found.empty()) refuse_without_runs(folder);
    runs.insert(runs.end(), found.begin(), found.end());
  }
  shorten_names(runs);
  for (const FoundRun& run : runs) all.push_back({.name = run.name, .runs = {run.folder}});
  return all;
}

// The curves of all that have one, and the names of the others.
struct PlottedCurves {
  Plot plot;
  std::vector<std::string> without;
};

PlottedCurves curves_of(const std::vector<Plotted>& all, const CurveColumn& up, CurveOver across) {
  PlottedCurves drawn{.plot = {.across = std::string(choice_name(kOver, Across(across))),
                               .up = up.label(),
                               .curves = {}},
                      .without = {}};
  for (const Plotted& one : all) {
    auto runs =
        vector_of(one.runs, [&](const path& run) { return recorded_curve(run, up, across); });
    Plot::Curve curve = runs.size() == 1
                            ? Plot::Curve{.name = one.name, .points = std::move(runs.front())}
                            : mean_curve(one.name, runs);
    if (curve.points.empty()) {
      drawn.without.push_back(one.name);
    } else {
      drawn.plot.curves.push_back(std::move(curve));
    }
  }
  return drawn;
}

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();

// A curve over rates; a rate at which a run is lost is a gap.
Plot::Curve curve_over_rates(std::string name, const std::vector<RateCurve::Point>& points) {
  Plot::Curve curve{.name = std::move(name)};
  for (const auto& [factor, rate, values, score, lost] : points) {
    curve.points.push_back({rate, score ? score->mean : kGap});
    curve.band.push_back(score ? PlotRange{std::ranges::min(values), std::ranges::max(values)}
                               : PlotRange{kGap, kGap});
  }
  return curve;
}

// Losses that would flatten all others become gaps, and others that differ much have a logarithmic
// axis, as on the page (web/rates.js).
void scale_losses(Plot& plot) {
  double least = std::numeric_limits<double>::infinity();
  for (const Plot::Curve& curve : plot.curves) {
    for (const PlotPoint& point : curve.points) least = std::fmin(least, point.y);
  }
  if (least <= 0) return;
  for (Plot::Curve& curve : plot.curves) {
    for (PlotPoint& point : curve.points) {
      if (point.y > 1000 * least) point.y = kGap;
      plot.has_logarithmic_values = plot.has_logarithmic_values || point.y > 10 * least;
    }
  }
}

// The scores of experiments over the learning rate: those of --rates, or of the runs that tune.
Plot plot_over_rates(const std::vector<path>& folders) {
  Plot plot{.across = "learning rate", .up = {}, .curves = {}, .is_logarithmic = true};
  bool is_loss = false;
  for (const path& folder : folders) {
    const RecordedExperiment read = read_experiment(folder);
    const Answer& answer = read.answer;
    is_loss = !answer.is_accuracy;
    plot.up = is_loss ? "test_loss" : "test_accuracy, %";
    for (const RateCurve& rates : answer.rates) {
      plot.curves.push_back(
          curve_over_rates(name_of(answer.cells[rates.cell], answer.cells), rates.points));
    }
    if (!answer.rates.empty()) continue;
    for (const TuningAnswer& tuned : read.tuning) {
      const std::vector<RateCurve::Point> points = points_of(tuned);
      if (tuned.option != kRateOption || points.empty()) continue;
      plot.curves.push_back(curve_over_rates(printable("tuning " + tuned.setting), points));
    }
  }
  if (plot.curves.empty()) {
    throw Error(
        "--x rate: nothing was tried at several rates; accepted: an experiment with --rates, "
        "or whose lr was tuned");
  }
  if (is_loss) scale_losses(plot);
  return plot;
}

Plot plot_of(const PlotArguments& arguments) {
  if (!arguments.across) {
    if (arguments.up) throw Error("--y: scores are over the rate; accepted: without --y");
    return plot_over_rates(arguments.folders);
  }
  const std::vector<Plotted> all = plotted_of(arguments.folders);
  const CurveColumn up = arguments.up.value_or(curve_column("accuracy"));
  PlottedCurves drawn = curves_of(all, up, *arguments.across);
  if (drawn.plot.curves.empty() && !arguments.up) {
    drawn = curves_of(all, curve_column("loss"), *arguments.across);
  }
  if (drawn.plot.curves.empty()) {
    throw_error(
        "no run has {} over {}; accepted: what their metrics.jsonl contain, such as --y loss --x "
        "samples",
        up.info.name, drawn.plot.across);
  }
  if (!drawn.without.empty()) {
    print_error(fmt::format("rubato plot: no {} over {}, so not drawn: {}\n", drawn.plot.up,
                            drawn.plot.across, fmt::join(drawn.without, ", ")));
  }
  return std::move(drawn.plot);
}

}  // namespace

int plot_command(std::span<const std::string> arguments) {
  const auto read = read_arguments(arguments);
  const PlotForm form = read.out ? PlotForm{.type = picture_type(*read.out)}
                                 : terminal_form(/*fits_terminal=*/!read.script);
  const std::string script = gnuplot_script(plot_of(read), form);
  if (read.script) write_file(*read.script, script);
  if (read.out) {
    write_file(*read.out, drawn_by_gnuplot(script));
  } else if (!read.script) {
    print_drawing(drawn_by_gnuplot(script));
  }
  return 0;
}

}  // namespace rubato::app
