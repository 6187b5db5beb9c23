#include "report_command.hpp"

#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/system/file.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/output.hpp"
#include "runs/page/page.hpp"

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
  line.option("out", "FILE", "the page; -o FILE is the same", out,
              [&](const std::string& text) { out = text; });
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

}  // namespace rubato::app
