// A page of runs has four parts: a summary with facts, charts, events, and how to reproduce each
// run. One run has its facts as a list; several have a table in which options that all share become
// a note, and long lists are folded. document_of_folders() decides whether the folders are runs or
// one experiment, whose page is made in experiment_page.cpp. The more runs there are, the fewer
// columns the charts of each have (columns_of()).

#include "page.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "base/state/sha256.hpp"
#include "experiment_page.hpp"
#include "html.hpp"
#include "run_charts.hpp"
#include "run_facts.hpp"
#include "runs/experiment/answer/answer_columns.hpp"
#include "runs/experiment/conduct/conduct.hpp"
#include "runs/recorded/watched_runs.hpp"
#include "thinned_run.hpp"

namespace rubato::page {

namespace {

// Lists of more runs than this are folded, because they would hide the rest of the page.
constexpr std::size_t kMostOpenRuns = 20;

// A sentence on how the run ended, or on its state if it has no summary.
std::string ending_of(const ThinnedRun& run) {
  const std::string end = end_of(run);
  if (end == "complete") return "Training was completed as planned.";
  if (end == "diverged") return "It diverged: a loss or a gradient was not finite.";
  if (end == "not ended") {
    return fmt::format(
        "It has no summary: it was interrupted, or is still being trained. Its metrics reach step "
        "{:.0f}.",
        run.last[Axis::steps]);
  }
  return fmt::format("It ended early: {}.", end);
}

std::string sentence_of(const ThinnedRun& run) {
  std::string text =
      fmt::format("Trained {} on {} with the rule {} under the trace {}: ", option_of(run, "model"),
                  option_of(run, "data"), option_of(run, "rule"), option_of(run, "trace"));
  if (const auto accuracy = final_value(run, "test_accuracy")) {
    text += fmt::format("test accuracy {} %", value_in_words(100 * *accuracy, true));
  } else if (const auto loss = final_value(run, "test_loss")) {
    text += fmt::format("test loss {}", value_in_words(*loss, false));
  } else {
    text += "no evaluation";
  }
  return fmt::format("{} after {:.0f} steps and {:.0f} samples. {}", text,
                     progress_of(run, Axis::steps), progress_of(run, Axis::samples),
                     ending_of(run));
}

// Names the best run by the final test accuracy, or by the final test loss if no run has an
// accuracy.
std::string sentence_of(std::span<const ThinnedRun> runs) {
  const auto best_by = [&](const std::string& test, bool greater) {
    const ThinnedRun* best = nullptr;
    for (const ThinnedRun& run : runs) {
      const auto value = final_value(run, test);
      if (!value) continue;
      const auto before = best == nullptr ? std::nullopt : final_value(*best, test);
      if (!before || (greater ? *value > *before : *value < *before)) best = &run;
    }
    return best;
  };
  const auto ended =
      std::ranges::count_if(runs, [](const ThinnedRun& run) { return end_of(run) == "complete"; });
  std::string text = fmt::format("{} runs, {} of them complete. ", runs.size(), ended);
  if (const ThinnedRun* const best = best_by("test_accuracy", true)) {
    text +=
        fmt::format("The highest final test accuracy is {} %, of {}.",
                    value_in_words(100 * *final_value(*best, "test_accuracy"), true), best->name);
  } else if (const ThinnedRun* const least = best_by("test_loss", false)) {
    text += fmt::format("The lowest final test loss is {}, of {}.",
                        value_in_words(*final_value(*least, "test_loss"), false), least->name);
  }
  return text + " No test says whether they differ by more than chance; rubato compare does.";
}

std::string facts_of_one(const ThinnedRun& run) {
  Rows rows;
  for (const RunFact& fact : run_facts()) {
    std::string value = fact.of(run);
    if (!value.empty()) rows.emplace_back(fact.heading, std::move(value));
  }
  return facts("The run", 2, rows);
}

// A table of the runs. Options that all runs share are stated once below it, and facts that no run
// has are left out.
std::string facts_of_all(std::span<const ThinnedRun> runs) {
  AnswerDocument::Table table{.title = "The runs", .alignment = {Column::left}};
  table.rows.push_back({"run"});
  for (const ThinnedRun& run : runs) table.rows.push_back({run.name});
  std::vector<std::string> common;
  for (const RunFact& fact : run_facts()) {
    const auto values = vector_of(runs, [&](const ThinnedRun& run) { return fact.of(run); });
    const bool same = std::ranges::all_of(
        values, [&](const std::string& value) { return value == values.front(); });
    if (same && (!fact.option.empty() || values.front().empty())) {
      if (!values.front().empty()) {
        common.push_back(fmt::format("{} {}", fact.heading, values.front()));
      }
      continue;
    }
    table.alignment.push_back(fact.is_number ? Column::right : Column::left);
    table.rows.front().push_back(fact.heading);
    for (std::size_t i = 0; i < values.size(); ++i) table.rows[i + 1].push_back(values[i]);
  }
  if (!common.empty()) {
    table.notes.push_back(fmt::format("The same for all: {}.", fmt::join(common, ", ")));
  }
  const std::string html = page::table(table);
  return runs.size() > kMostOpenRuns ? folded_html(table.title, html) : html;
}

// Events happen in a step, but checkpoints and changes of hosts come between two steps.
std::string when_of(const Mark& mark) {
  const bool between = mark.kind == kCheckpoint || mark.kind == kHosts;
  return fmt::format("{} step {}", between ? "after" : "in", mark.step);
}

std::string events_of(std::span<const ThinnedRun> runs) {
  constexpr std::size_t kMostRows = 400;
  constexpr std::size_t kMostOpenRows = 20;
  const bool named = runs.size() > 1;
  AnswerDocument::Table table{.title = "Faults, restarts, checkpoints and hosts", .keys = 1};
  table.alignment = {Column::left, Column::left, Column::left};
  table.rows.push_back({"when", "what", "details"});
  if (named) {
    table.alignment.push_back(Column::left);
    table.rows.front().emplace_back("run");
  }
  std::int64_t all = 0;
  std::int64_t shown = 0;
  for (const ThinnedRun& run : runs) {
    for (const std::int64_t count : run.mark_counts) all += count;
    for (const Mark& mark : run.marks) {
      if (table.rows.size() > kMostRows) break;
      shown += mark.count;
      table.rows.push_back({when_of(mark), std::string(mark.kind), mark.text});
      if (named) table.rows.back().push_back(run.name);
    }
  }
  if (all == 0) return {};
  const bool has_details = std::any_of(table.rows.begin() + 1, table.rows.end(),
                                       [](const auto& row) { return !row[2].empty(); });
  if (!has_details) {
    table.alignment.erase(table.alignment.begin() + 2);
    for (std::vector<std::string>& row : table.rows) row.erase(row.begin() + 2);
  }
  if (shown < all) table.notes.push_back(fmt::format("These are {} of {}.", shown, all));
  const std::string html = page::table(table);
  return "<h2>What happened</h2>\n" +
         (table.rows.size() > kMostOpenRows ? folded_html(table.title, html) : html);
}

// Hashes of the files that reproduce a run.
void add_hashes(const ThinnedRun& run, Rows& rows) {
  for (const char* name : {"config.toml", "trace.csv", "availability.csv", "given-model.pt",
                           "given-loss.pt", "given-weights.pt"}) {
    const std::filesystem::path file = std::filesystem::path(run.name) / name;
    if (!is_there(file)) continue;
    rows.emplace_back(fmt::format("SHA-256 of {}", name), Sha256::hex_of_file(file));
  }
}

// The command for a window of steps: those around the event that matters most, or the last ones.
std::string replay_of(const ThinnedRun& run) {
  constexpr std::int64_t kSteps = 20;
  const auto last = static_cast<std::int64_t>(run.last[Axis::steps]);
  if (last < 1) return {};
  std::int64_t middle = last;
  for (const std::string_view kind : {kFewerCores, kRestart, kFault, kDiverged}) {
    const auto mark = std::ranges::find(run.marks, kind, &Mark::kind);
    if (mark != run.marks.end()) middle = std::min(mark->step, last);
  }
  const std::int64_t to = std::min(last, middle + kSteps / 2);
  return paragraph(
             "Steps can be repeated to write down more of them: every minibatch, noise, "
             "statistics of parameters, a timeline, weights.") +
         fmt::format(
             "<pre tabindex=\"0\">rubato replay {} --steps {}..{} --log-minibatches</pre>\n",
             escaped(shell_quoted(run.name)), std::max<std::int64_t>(1, to - kSteps + 1), to);
}

}  // namespace

std::string head_of(const ThinnedRun& run) {
  return paragraph(sentence_of(run)) + list(run.warnings);
}

std::string reproduction_of(const ThinnedRun& run) {
  const std::string config = (std::filesystem::path(run.name) / RunFolder::kConfiguration).string();
  const std::string hosts = option_of(run, "hosts");
  std::string html =
      fmt::format("<pre tabindex=\"0\">rubato {}train --config {}</pre>\n",
                  hosts.empty() ? "" : fmt::format("launch --hosts {} -- ", escaped(hosts)),
                  escaped(shell_quoted(config)));
  if (!hosts.empty()) {
    html += paragraph(
        "rubato launch starts the hosts on one machine. Any other number of hosts gives the "
        "same weights, bit for bit.");
  }
  html += replay_of(run);
  html += facts("Where its steps are", 3, run.past);
  Rows rows = summary_rows(run.summary);
  add_hashes(run, rows);
  html += facts("What it was computed with, and its results", 3, rows);
  if (!run.configuration.empty()) html += folded(RunFolder::kConfiguration, run.configuration);
  if (!run.hosts.empty()) {
    html += folded(RunFolder::kHosts, fmt::to_string(fmt::join(run.hosts, "\n")));
  }
  return html;
}

Document document_of_runs(std::span<const ThinnedRun> runs) {
  const bool one = runs.size() == 1;
  Document document{.title = one ? "rubato: " + runs.front().name
                                 : fmt::format("rubato: {} runs", runs.size())};
  document.answer = paragraph(one ? sentence_of(runs.front()) : sentence_of(runs));
  document.answer += one ? facts_of_one(runs.front()) : facts_of_all(runs);
  std::vector<std::string> warnings;
  for (const ThinnedRun& run : runs) {
    warnings.insert(warnings.end(), run.warnings.begin(), run.warnings.end());
  }
  document.answer += list(warnings);
  document.charts = charts_of(runs);
  document.end =
      events_of(runs) + (one ? runs.front().whatif_chapter : "") + "<h2>How to reproduce it</h2>\n";
  std::string how;
  for (const ThinnedRun& run : runs) {
    how += one ? reproduction_of(run) : folded_html(run.name, reproduction_of(run));
  }
  document.end += runs.size() > kMostOpenRuns ? folded_html("For each run", how) : how;
  return document;
}

namespace {

// Columns of all runs together, for a page of less than 5 MB.
constexpr std::size_t kColumnsOfRuns = 6500;
constexpr std::size_t kMostColumnsOfRun = 480;

}  // namespace

std::size_t columns_of(std::size_t runs) {
  return std::min(kMostColumnsOfRun, kColumnsOfRuns / runs / 2 * 2);
}

Document document_of_folders(const std::vector<std::string>& folders) {
  std::vector<FoundRun> found;
  for (const std::string& folder : folders) {
    if (is_experiment(folder)) {
      if (folders.size() == 1) return document_of_experiment(read_experiment(folder), folder);
      throw_error(
          "{}: is an experiment among other folders; accepted: one experiment alone, or runs",
          folder);
    }
    const std::vector<FoundRun> in_it = found_runs(folder);
    if (in_it.empty()) refuse_without_runs(folder);
    found.insert(found.end(), in_it.begin(), in_it.end());
  }
  if (found.size() > kMostRuns) {
    throw_error("{} runs; accepted: up to {}, or the folder of an experiment", found.size(),
                kMostRuns);
  }
  return document_of_runs(vector_of(found, [&](const FoundRun& run) {
    return read_run(run.folder.string(), columns_of(found.size()));
  }));
}

}  // namespace rubato::page
