#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "clients/app/commands.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/output.hpp"
#include "runs/page/page.hpp"
#include "runs/report/metrics_export.hpp"

namespace rubato::app {

int report_command(std::span<const std::string> arguments) {
  std::vector<std::string> folders;
  std::string out = "report.html";
  CommandLine line("rubato report",
                   "Writes a page about a run, about several runs side by side, or about an "
                   "experiment of `rubato compare`: the answer, then charts. The page is one file "
                   "that opens in any browser, without a network.");
  line.operands(OperandCount::some, "RUN|EXPERIMENT",
                "the folder of a run, one with runs in it, or of an experiment",
                [&](const std::string& text) { folders.push_back(text); });
  line.text("out", "FILE", "the page; -o FILE is the same", out, out);
  line.footer(
      "Examples:\n"
      "  rubato report runs/2024-05-31T12-00-00Z\n"
      "  rubato report runs/linear runs/adascale -o rules.html\n"
      "  rubato report experiments/2024-05-31T12-00-00Z\n"
      "Exit codes: 2 for a mistake in the options or files, 24 if the page could not be\n"
      "written. docs/report.md says more.");
  line.parse(arguments);
  const std::string library = page::read_chart_library(page::chart_library_file());
  const std::string html = page::to_html(page::document_of_folders(folders), library);
  write_file(out, html);
  constexpr double kKibibyte = 1024;
  print_text(fmt::format("{}: {:.0f} KiB\n", out, static_cast<double>(html.size()) / kKibibyte));
  return 0;
}

namespace {

// Prints in large pieces, and throws once the reader has closed the pipe, so that the rest is not
// formatted.
class Printing {
 public:
  void add(std::string_view text) {
    text_ += text;
    if (text_.size() >= kPiece) print();
  }
  void print() {
    print_out(text_);
    text_.clear();
    require_output();
  }

 private:
  static constexpr std::size_t kPiece = 65536;

  std::string text_;
};

}  // namespace

int metrics_command(std::span<const std::string> arguments) {
  std::filesystem::path run;
  std::string kind = "step";
  CommandLine line(
      "rubato metrics",
      "Prints the metrics of a run as CSV, for spreadsheets and data frames: a row for "
      "each step, each epoch, ..., with the columns of docs/records.md. The run may "
      "still train.");
  line.operands(OperandCount::one, "RUN", "the folder of the run",
                [&](const std::string& text) { run = text; });
  line.option("kind", fmt::to_string(fmt::join(metrics_kinds(), "|")), "the kind of row", kind,
              [&](const std::string& text) {
                const std::vector<std::string> kinds = metrics_kinds();
                const std::vector<std::string_view> names(kinds.begin(), kinds.end());
                if (std::ranges::find(kinds, text) == kinds.end()) {
                  throw Error(unknown_name_message("kind of line", text, names));
                }
                kind = text;
              });
  line.footer(
      "Values in [] are the defaults. Examples:\n"
      "  rubato metrics runs/2024-05-31T12-00-00Z >steps.csv\n"
      "  rubato metrics runs/2024-05-31T12-00-00Z --kind epoch >epochs.csv\n"
      "Exit codes: 2 for a mistake in the options or files, 24 if output could not be\n"
      "written.");
  line.parse(arguments);
  Printing printing;
  write_metrics_csv(run / RunFolder::kMetrics, kind,
                    [&](std::string_view text) { printing.add(text); });
  printing.print();
  return 0;
}

}  // namespace rubato::app
