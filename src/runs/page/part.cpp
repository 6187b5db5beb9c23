// The rules of web/parts.css are those of pages, which have them as they are; here each selector is
// put below the class of the part. So that a notebook's own rules for tables do not win against
// them, the class counts twice. Notebooks say on an element around the part whether they are light
// or dark: JupyterLab and its exported pages by data-jp-theme-light, VS Code by a class of <body>.

#include "part.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

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
constexpr std::size_t kColumnsOfSizes = 400;
constexpr std::string_view kPart = ".rubato-part.rubato-part";

// Removes and returns the text before a letter, and the letter.
std::string_view take_until(std::string_view& text, char letter) {
  const std::size_t end = std::min(text.find(letter), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// Declarations without their line breaks and indents.
std::string on_one_line(std::string_view declarations) {
  std::string line;
  for (std::string_view rest = trimmed(declarations); !rest.empty();) {
    line += trimmed(take_until(rest, ';'));
    line += ';';
  }
  return line;
}

// The rules of a style sheet without at-rules, for elements within a part.
std::string rules_within_part(std::string_view css) {
  std::string rules;
  while (!trimmed(css).empty()) {
    std::string_view selectors = take_until(css, '{');
    const std::string_view declarations = take_until(css, '}');
    if (const std::size_t comment = selectors.rfind("*/"); comment != std::string_view::npos) {
      selectors.remove_prefix(comment + 2);
    }
    std::string list;
    while (!selectors.empty()) {
      list += fmt::format("{}{} {}", list.empty() ? "" : ",", kPart,
                          trimmed(take_until(selectors, ',')));
    }
    rules += fmt::format("{}{{{}}}\n", list, on_one_line(declarations));
  }
  return rules;
}

// The colors of web/colors.css, light ones and dark ones, for all that says which are wanted.
std::string color_rules() {
  std::string_view from_light = kColorsCss.substr(kColorsCss.find('{') + 1);
  std::string_view from_dark = kColorsCss.substr(kColorsCss.rfind('{') + 1);
  const std::string light = on_one_line(take_until(from_light, '}'));
  const std::string dark = on_one_line(take_until(from_dark, '}'));
  return fmt::format(
      "{0}{{color-scheme:light;{1}}}\n"
      "@media (prefers-color-scheme:dark){{{0}{{color-scheme:dark;{2}}}}}\n"
      "[data-jp-theme-light=true] {0},.vscode-light {0}{{color-scheme:light;{1}}}\n"
      "[data-jp-theme-light=false] {0},.vscode-dark {0}{{color-scheme:dark;{2}}}\n",
      kPart, light, dark);
}

std::string part(const std::string& head, const Json& charts) {
  std::string html =
      "<div class=\"rubato-part\">\n<style>\n" + color_rules() + rules_within_part(kPartsCss);
  html += fmt::format(
      "{0}{{box-sizing:border-box;padding:0.5rem 0.75rem;background:var(--back);color:var(--text);"
      "font:0.875rem/1.5 system-ui,sans-serif}}\n{0} .figures{{margin-top:0.75rem}}\n</style>\n",
      kPart);
  return html + head + drawn_charts(charts, kMostCharts) + "</div>\n";
}

// The records of a run that was resumed may begin with a later step, and know the position on no
// other axis.
bool begins_later(const ThinnedRun& run) {
  const auto& buckets = run.steps.buckets();
  return !buckets.empty() &&
         buckets.front().at[Axis::steps] > static_cast<double>(buckets.front().steps);
}

// A figure of a number over the steps of a trace, or over time.
Json size_figure(const char* title, const char* unit, const char* key, const char* across) {
  return {{"type", "lines"},
          {"title", title},
          {"unit", unit},
          {"across", across},
          {"size", true},
          {"whole", true},
          {"curves", {{{"of", "steps"}, {"key", key}, {"label", title}}}}};
}

Json charts_of(const Buckets& buckets, Axis axis, std::vector<Json> figures) {
  Json numbers = Json::object();
  for (const std::string& name : buckets.names()) numbers[name] = numbers_json(buckets, name, 1);
  const Json steps{{"axes", axes_json(buckets)}, {"numbers", std::move(numbers)}};
  return {{"axis", kAxisRows.at(static_cast<std::size_t>(axis)).key},
          {"runs", {{{"name", ""}, {"steps", steps}}}},
          {"sections", {{{"figures", std::move(figures)}}}}};
}

std::string range_text(std::int64_t fewest, std::int64_t most) {
  return fewest == most ? fmt::to_string(most) : fmt::format("{} to {}", fewest, most);
}

// The end of a sentence.
std::string end_text(TraceEnd end) {
  return fmt::format("; end: {}.", choice_name(kTraceEnds, end));
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
  Buckets buckets(kColumnsOfSizes);
  double samples = 0;
  // A size holds until the position that it is given.
  const auto add = [&](double step, const TraceStep& row) {
    Position at;
    at[Axis::steps] = step;
    buckets.begin_step(at);
    buckets.add("batch", static_cast<double>(row.batch_size));
    if (row.cores) buckets.add("cores", static_cast<double>(*row.cores));
  };
  add(0, trace.steps().front());
  for (std::size_t i = 0; i < trace.steps().size(); ++i) {
    add(static_cast<double>(i + 1), trace.steps()[i]);
    samples += static_cast<double>(trace.steps()[i].batch_size);
  }
  const auto [least, most] = std::ranges::minmax(trace.steps(), {}, &TraceStep::batch_size);
  std::string text =
      fmt::format("{}: {} step{} of {} samples, {:.1f} on average", trace.source(), trace.length(),
                  trace.length() == 1 ? "" : "s", range_text(least.batch_size, most.batch_size),
                  samples / static_cast<double>(trace.length()));
  std::vector<Json> figures{size_figure("Batch size", "samples", "batch", "steps")};
  if (buckets.has("cores")) figures.push_back(size_figure("Cores", "", "cores", "steps"));
  return part(paragraph(text + end_text(trace.end())),
              charts_of(buckets, Axis::steps, std::move(figures)));
}

std::string part_of(const Availability& availability) {
  Buckets buckets(kColumnsOfSizes);
  const auto add = [&](double seconds, std::int64_t devices) {
    Position at;
    at[Axis::hours] = seconds / 3600;
    buckets.begin_step(at);
    buckets.add("devices", static_cast<double>(devices));
  };
  const std::vector<AvailabilityChange>& changes = availability.changes();
  add(0, changes.front().devices);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const bool is_last = i + 1 == changes.size();
    add(is_last ? availability.length() : changes[i + 1].seconds, changes[i].devices);
  }
  const AvailabilitySummary summary = summary_of(availability);
  const std::string text =
      fmt::format("{}: {} devices, {:.1f} on average, over {:.4g} hours, with {} change{}",
                  availability.source(), range_text(summary.fewest, summary.most), summary.mean,
                  availability.length() / 3600, summary.changes, summary.changes == 1 ? "" : "s");
  return part(paragraph(text + end_text(availability.end())),
              charts_of(buckets, Axis::hours, {size_figure("Devices", "", "devices", "hours")}));
}

}  // namespace rubato::page
