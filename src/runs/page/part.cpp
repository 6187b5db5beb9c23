// The rules of web/parts.css are those of pages, which have them as they are; here they are nested
// in the rule of the part, as browsers since 2024 read them. So that a notebook's own rules for
// tables do not win against them, the class of the part counts twice. Notebooks say on an element
// around the part whether they are light or dark: JupyterLab and its exported pages by
// data-jp-theme-light, VS Code by a class of <body>.

#include "part.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/parse.hpp>

#include "drawn_charts.hpp"
#include "experiment_page.hpp"
#include "html.hpp"
#include "page.hpp"
#include "run_charts.hpp"
#include "runs/experiment/answer/answer_document.hpp"
#include "runs/experiment/conduct/conduct.hpp"
#include "web_files.hpp"

namespace rubato::page {

namespace {

constexpr std::size_t kMostCharts = 4;
// Changes of a trace or an availability, of which a part has room for more than of curves.
constexpr std::size_t kColumnsOfSizes = 200;
constexpr std::string_view kPart = ".rubato-part.rubato-part";

std::string part(const std::string& head, const Json& charts) {
  // The declarations of the first rule.
  const std::size_t begin = kColorsCss.find('{') + 1;
  const std::string_view colors = kColorsCss.substr(begin, kColorsCss.find('}') - begin);
  const std::string styles = fmt::format(
      "{0}{{color-scheme:light dark;{1}box-sizing:border-box;padding:0.5rem 0.75rem;"
      "background:var(--back);color:var(--text);font:0.875rem/1.5 system-ui,sans-serif;\n"
      "{2}.figures{{margin-top:0.75rem}}\n}}\n"
      "[data-jp-theme-light=true] {0},.vscode-light {0}{{color-scheme:light}}\n"
      "[data-jp-theme-light=false] {0},.vscode-dark {0}{{color-scheme:dark}}\n",
      kPart, colors, kPartsCss);
  return "<div class=\"rubato-part\">\n<style>\n" + styles + "</style>\n" + head +
         drawn_charts(charts, kMostCharts) + "</div>\n";
}

// The records of a run that was resumed may begin with a later step, and know the position on no
// other axis.
bool begins_later(const ThinnedRun& run) {
  const auto& buckets = run.steps.buckets();
  return !buckets.empty() &&
         buckets.front().at[Axis::steps] > static_cast<double>(buckets.front().steps);
}

std::string range_text(std::int64_t fewest, std::int64_t most) {
  return fewest == most ? fmt::to_string(most) : fmt::format("{} to {}", fewest, most);
}

// Begins a step of a run of sizes, each of which holds until the position that it is given.
void begin_at(Axis axis, double position, ThinnedRun& run) {
  Position at;
  at[axis] = position;
  run.steps.begin_step(at);
}

}  // namespace

std::string part_of(const ThinnedRun& run) {
  Json charts = charts_of(std::span(&run, 1));
  if (begins_later(run)) charts["axis"] = kAxisRows.front().key;
  return part(head_of(run), charts);
}

std::string part_of_folder(const std::string& folder) {
  if (!is_experiment(folder)) return part_of(read_run(folder, kColumnsOfPart));
  const RecordedExperiment experiment = read_experiment(folder);
  const AnswerDocument answer =
      document_of(experiment.design, experiment.answer, experiment.tuning);
  Json charts = charts_of(experiment.answer, experiment.tuning);
  charts["axis"] = axis_of(experiment.design.budget);
  return part(head_of(answer), charts);
}

std::string part_of(const Trace& trace) {
  ThinnedRun run("", kColumnsOfSizes);
  double samples = 0;
  const auto add = [&](std::size_t step, const TraceStep& row) {
    begin_at(Axis::steps, static_cast<double>(step), run);
    run.steps.add("batch", static_cast<double>(row.batch_size));
    if (row.cores) run.steps.add("cores", static_cast<double>(*row.cores));
  };
  add(0, trace.steps().front());
  for (std::size_t i = 0; i < trace.steps().size(); ++i) {
    add(i + 1, trace.steps()[i]);
    samples += static_cast<double>(trace.steps()[i].batch_size);
  }
  const auto [least, most] = std::ranges::minmax(trace.steps(), {}, &TraceStep::batch_size);
  return part(paragraph(fmt::format("{}: {} step{} of {} samples, {:.1f} on average; end: {}.",
                                    trace.source(), trace.length(), trace.length() == 1 ? "" : "s",
                                    range_text(least.batch_size, most.batch_size),
                                    samples / static_cast<double>(trace.length()),
                                    choice_name(kTraceEnds, trace.end()))),
              charts_of(std::span(&run, 1)));
}

std::string part_of(const Availability& availability) {
  ThinnedRun run("", kColumnsOfSizes);
  const auto add = [&](double seconds, std::int64_t devices) {
    begin_at(Axis::hours, seconds / 3600, run);
    run.steps.add("cores", static_cast<double>(devices));
  };
  std::int64_t devices = availability.changes().front().devices;
  for (const AvailabilityChange& change : availability.changes()) {
    add(change.seconds, std::exchange(devices, change.devices));
  }
  add(availability.length(), devices);
  Json charts = charts_of(std::span(&run, 1));
  charts["axis"] = kAxisRows.at(static_cast<std::size_t>(Axis::hours)).key;
  charts["sections"][0]["figures"][0]["title"] = "Devices";
  const AvailabilitySummary summary = summary_of(availability);
  return part(
      paragraph(fmt::format(
          "{}: {} devices, {:.1f} on average, over {:.4g} hours, with {} change{}; end: {}.",
          availability.source(), range_text(summary.fewest, summary.most), summary.mean,
          availability.length() / 3600, summary.changes, summary.changes == 1 ? "" : "s",
          choice_name(kTraceEnds, availability.end()))),
      charts);
}

}  // namespace rubato::page
