#include "experiment_page.hpp"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/core/text/text.hpp"
#include "base/state/sha256.hpp"
#include "buckets.hpp"
#include "html.hpp"
#include "run_facts.hpp"
#include "runs/experiment/answer/answer_columns.hpp"
#include "runs/experiment/conduct/experiment_folder.hpp"

namespace rubato::page {

std::string label_of(const Answer& answer, const Answer::Cell& cell) {
  return fmt::to_string(fmt::join(answer.choice_of(cell), " "));
}

namespace {

namespace fs = std::filesystem;

// More tables than this are folded, because they would hide the rest of the page.
constexpr std::size_t kMostOpenTables = 4;

std::string tables_of(const AnswerDocument& document, std::initializer_list<AnswerTable> kinds) {
  std::string html;
  for (AnswerDocument::Table one : document.tables) {
    if (std::ranges::find(kinds, one.kind) == kinds.end()) continue;
    // Notes that repeat one of the findings at the top are left out.
    std::erase_if(one.notes, [&](const std::string& note) {
      return std::ranges::any_of(document.findings, [&](const std::string& finding) {
        return finding.starts_with(one.title + ": ") && finding.find(note) != std::string::npos;
      });
    });
    html += table(one);
  }
  return html;
}

}  // namespace

std::string head_of(const AnswerDocument& answer) {
  std::string html = list(answer.findings);
  html += tables_of(answer, {AnswerTable::none});
  const auto results =
      std::ranges::count(answer.tables, AnswerTable::results, &AnswerDocument::Table::kind);
  const std::string tables = tables_of(answer, {AnswerTable::results, AnswerTable::margins});
  return html + (std::cmp_greater(results, kMostOpenTables)
                     ? folded_html("The results of each trace", tables)
                     : tables);
}

namespace {

// The answer and what it is an answer to.
std::string answer_html(const AnswerDocument& document) {
  std::string html = head_of(document);
  html += "<h2>What was compared</h2>\n" + list(document.facts);
  if (!document.notes.empty()) html += "<h2>Remarks on runs</h2>\n" + list(document.notes);
  return html + paragraph(document.limits);
}

// The engine, kernels and versions of the first run that has ended, and the hashes of the files
// that all runs depend on.
std::string made_with(const RecordedExperiment& experiment, const fs::path& folder) {
  Rows rows;
  for (const Answer::Run& run : experiment.answer.runs) {
    const fs::path file = files_of(folder, run.name, false).folder / RunFolder::kSummary;
    if (!is_there(file)) continue;
    const auto summary = nlohmann::json::parse(read_file(file), nullptr, false);
    for (auto& row : summary_rows(summary)) {
      if (row.first == "engine" || row.first == "kernels" || row.first == "versions") {
        rows.push_back(std::move(row));
      }
    }
    break;
  }
  std::set<fs::path> files{folder / kDesignFile};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder / "traces", error)) {
    if (entry.is_regular_file()) files.insert(entry.path());
  }
  for (const fs::path& file : files) {
    rows.emplace_back(fmt::format("SHA-256 of {}", file.lexically_relative(folder).string()),
                      Sha256::hex_of_file(file));
  }
  return facts("What it was computed with", 3, rows);
}

}  // namespace

std::string_view axis_of(const RunBudget& budget) {
  for (const AxisRow& axis : kAxisRows) {
    if (axis.key == budget.kind) return axis.key;
  }
  return budget.kind == "epochs" ? "samples" : kAxisRows.front().key;
}

Document document_of_experiment(const RecordedExperiment& experiment, const std::string& folder) {
  const AnswerDocument answer =
      document_of(experiment.design, experiment.answer, experiment.tuning);
  Document document{.title = "rubato: " + folder,
                    .answer = answer_html(answer),
                    .charts = charts_of(experiment.answer, experiment.tuning)};
  document.charts["axis"] = axis_of(experiment.design.budget);
  document.end = "<h2>What it took</h2>\n" +
                 folded_html("Steps, samples and more", tables_of(answer, {AnswerTable::costs}));
  document.end += "<h2>How to reproduce it</h2>\n";
  document.end += fmt::format("<pre tabindex=\"0\">rubato compare --config {}</pre>\n",
                              escaped(shell_quoted((fs::path(folder) / kDesignFile).string())));
  document.end += made_with(experiment, folder);
  document.end += folded(kDesignFile, read_file(fs::path(folder) / kDesignFile));
  document.end += paragraph(fmt::format(
      "rubato report {}/runs/NAME makes a page of one of its runs.", shell_quoted(folder)));
  return document;
}

}  // namespace rubato::page
