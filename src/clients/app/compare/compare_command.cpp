#include "compare_command.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include <rubato/base/error.hpp>

#include "base/core/system/file.hpp"
#include "base/core/text/printable.hpp"
#include "clients/app/line/exit_code.hpp"
#include "clients/app/line/output.hpp"
#include "clients/app/line/stop_signals.hpp"
#include "compare_arguments.hpp"
#include "compare_progress.hpp"
#include "runs/experiment/answer/answer_document.hpp"
#include "runs/experiment/conduct/conduct.hpp"
#include "runs/experiment/conduct/experiment_folder.hpp"

namespace rubato::app {

namespace {

constexpr const char* kStopping =
    "\nrubato compare: the runs finish their steps and write checkpoints; repeat after a second to "
    "end at once\n";

// The file that this process runs, even if its name has been given to another file since.
constexpr const char* kThisProgram = "/proc/self/exe";

void warn(const std::string& text) {
  print_error(fmt::format("rubato compare: {}\n", text));
}

std::unique_ptr<ExperimentView> view_for(const CompareArguments& arguments) {
  if (arguments.quiet) return std::make_unique<NoProgress>();
  return std::make_unique<CompareProgress>(arguments.jobs, can_redraw(STDOUT_FILENO));
}

int report(const CompareArguments& arguments, const Design& design, const ExperimentFolder& folder,
           const Conducted& conducted, int signal) {
  const std::string go_on =
      fmt::format("to continue: rubato compare --resume {}", shell_quoted(folder.path().string()));
  if (signal != 0) {
    warn("stopped by a signal; " + go_on);
    return static_cast<int>(exit_code_of_signal(signal));
  }
  if (conducted.answer) {
    write_answer(folder, design, conducted);
    const AnswerDocument document = document_of(design, *conducted.answer, conducted.tuning);
    const std::string answer = to_text(document, output_width());
    if (arguments.quiet) {
      print_out(answer);
    } else {
      print_out(fmt::format("\n{}\n", answer));
      print_text(fmt::format("answer.md, answer.csv, runs.csv and answer.json are in {}\n",
                             folder.path().string()));
    }
  }
  if (conducted.missing == 0) return 0;
  warn(fmt::format("{} run{} did not reach {} end; {}", conducted.missing,
                   conducted.missing == 1 ? "" : "s", conducted.missing == 1 ? "its" : "their",
                   go_on));
  return static_cast<int>(ExitCode::incomplete);
}

}  // namespace

int compare_command(std::span<const std::string> arguments) {
  const auto options = parse_compare_arguments(arguments);
  // Every mistake of the user is found before the folder is made.
  DataFacts facts;
  const ExperimentPlan plan = plan_of(options.design);
  facts.require_runnable(plan.runs);
  for (const TuningCell& cell : tuning_of(options.design)) facts.require_runnable(cell.runs);
  const ExperimentFolder folder(options.folder);
  const Design design = folder.adopt(options.design);
  folder.write_design(design);

  const StopSignals signals(kStopping);
  const PoolOptions pool{
      .program = kThisProgram, .jobs = options.jobs, .inherited = folder.lock(), .stopping = [&] {
        return signals.received() != 0;
      }};
  const auto view = view_for(options);
  const Conducted conducted = conduct(design, folder, facts, pool, *view);
  return report(options, design, folder, conducted, signals.received());
}

}  // namespace rubato::app
