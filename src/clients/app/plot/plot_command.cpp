#include "plot_command.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "base/core/terminal/drawn_line.hpp"
#include "base/core/terminal/terminal.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/output.hpp"
#include "plot_file.hpp"
#include "runs/recorded/found_runs.hpp"
#include "runs/recorded/plot/plot_lines.hpp"
#include "runs/recorded/recorded_curve.hpp"

namespace rubato::app {

namespace {

using std::filesystem::path;

constexpr std::array<Choice<CurveOver>, 4> kOver{{{CurveOver::samples, "samples"},
                                                  {CurveOver::steps, "steps"},
                                                  {CurveOver::hours, "hours"},
                                                  {CurveOver::money, "money"}}};

struct PlotArguments {
  std::vector<path> folders;
  /// Not given, it is the accuracy where there is one, else the loss.
  std::optional<CurveColumn> up;
  CurveOver across = CurveOver::samples;
  std::optional<path> out;
};

PlotArguments read_arguments(std::span<const std::string> arguments) {
  PlotArguments read;
  CommandLine line("rubato plot",
                   "Plots what runs have written of their steps or epochs, over one another: in "
                   "the terminal, or as a picture.");
  line.operands(OperandCount::some, "RUN|EXPERIMENT", "the folder of a run, or one with runs in it",
                [&](const std::string& text) { read.folders.emplace_back(text); });
  line.option("y", "NAME",
              "what is plotted: a number of steps or epochs that `rubato list records` names",
              "accuracy, or loss where there is none",
              [&](const std::string& text) { read.up = curve_column(text); });
  line.option("x", choice_names(kOver), "over what: hours and money are those of modelled time",
              "samples",
              [&](const std::string& text) { read.across = parse_choice("axis", text, kOver); });
  line.option("out", "FILE.svg|FILE.png", "write a picture, in place of the plot in the terminal",
              "", [&](const std::string& text) {
                require_picture_file(text);
                read.out = text;
              });
  line.footer(
      "Examples:\n"
      "  rubato plot runs/linear runs/root\n"
      "  rubato plot runs/linear --y loss --x steps\n"
      "  rubato plot answer --out accuracy.svg\n"
      "Exit codes: 2 for a mistake in the options or files, 24 for a picture that\n"
      "cannot be written.");
  line.parse(arguments);
  return read;
}

// By their own names where these are different.
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

std::vector<FoundRun> runs_of(const std::vector<path>& folders) {
  std::vector<FoundRun> runs;
  for (const path& folder : folders) {
    const std::vector<FoundRun> found = found_runs(folder);
    if (found.empty()) refuse_without_runs(folder);
    runs.insert(runs.end(), found.begin(), found.end());
  }
  shorten_names(runs);
  return runs;
}

// Without points where no run has any.
Plot plot_of(const std::vector<FoundRun>& runs, const CurveColumn& up, CurveOver across) {
  Plot plot{.across = std::string(choice_name(kOver, across)), .up = up.label(), .curves = {}};
  for (const FoundRun& run : runs) {
    plot.curves.push_back({.name = run.name, .points = recorded_curve(run.folder, up, across)});
  }
  const bool none = std::ranges::all_of(
      plot.curves, [](const Plot::Curve& curve) { return curve.points.empty(); });
  if (none) plot.curves.clear();
  return plot;
}

Plot plot_of(const PlotArguments& arguments) {
  const std::vector<FoundRun> runs = runs_of(arguments.folders);
  const CurveColumn up = arguments.up.value_or(curve_column("accuracy"));
  Plot plot = plot_of(runs, up, arguments.across);
  if (plot.curves.empty() && !arguments.up) {
    plot = plot_of(runs, curve_column("loss"), arguments.across);
  }
  if (!plot.curves.empty()) return plot;
  throw Error(fmt::format(
      "no run has {} over {}; accepted: what their metrics.jsonl have, such as --y loss "
      "--x samples",
      up.info.name, plot.across));
}

void print_plot(const Plot& plot) {
  constexpr int kRows = 16;
  const bool terminal = can_redraw(STDOUT_FILENO);
  const auto rows = static_cast<int>(terminal_rows(STDOUT_FILENO).value_or(24));
  const int legend = plot.curves.size() < 2 ? 0 : static_cast<int>(plot.curves.size());
  const ViewStyle style{.columns = drawable_columns(STDOUT_FILENO),
                        .utf8 = speaks_utf8(),
                        .colours = terminal && wants_colours()};
  // Of a terminal that is high, what is above the plot stays to be seen.
  const int own = terminal ? std::clamp(rows - 6 - legend, kRows / 2, 2 * kRows) : kRows;
  for (const std::string& line : plot_lines(plot, style, own)) print_out(line + '\n');
}

}  // namespace

int plot_command(std::span<const std::string> arguments) {
  const auto read = read_arguments(arguments);
  const Plot plot = plot_of(read);
  if (read.out) {
    write_picture(plot, *read.out);
  } else {
    print_plot(plot);
  }
  return 0;
}

}  // namespace rubato::app
