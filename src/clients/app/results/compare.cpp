// The progress of an experiment is in its folders alone (docs/adr/0037-compare.md): conduct()
// brings each run to its end in a process of its own, and after an interruption the same command
// continues. All runs are checked before the folder is made; with --run, only one run of a plan
// that has been checked is done, while other processes may do others. CompareProgress estimates the
// time that is left from the mean time of the ended runs of the stage, including those of earlier
// commands, divided by the number of jobs. The exit code is, in this order, that of a signal, of a
// run that needs others first, of results that differ, and of missing runs.

#include "compare.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "base/core/file.hpp"
#include "base/core/terminal/drawn_lines.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "clients/app/commands.hpp"
#include "clients/app/line/exit_code.hpp"
#include "clients/app/line/output.hpp"
#include "clients/app/line/signals.hpp"
#include "runs/experiment/answer/answer_document.hpp"
#include "runs/experiment/conduct/conduct.hpp"
#include "runs/experiment/conduct/experiment_folder.hpp"
#include "runs/report/progress.hpp"

namespace rubato::app {

namespace {

constexpr int kNarrowestMeter = 6;

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string damage(const std::string& run, const std::string& what,
                   const std::filesystem::path& aside) {
  return fmt::format("{}  {}; it is run again; its old files are in {}", run, what, aside.string());
}

std::string value_of(const RunResult& result) {
  if (!result.is_accuracy) return fmt::format("test loss {:.4g}", *result.final_value);
  return fmt::format("{:.2f} %", *result.final_value * 100);
}

std::string outcome(const RunResult& result) {
  switch (result.end) {
    case ResultEnd::out_of_devices:
      return result.reason;
    case ResultEnd::diverged:
    case ResultEnd::failed:
      return fmt::format("{}: {}", name_of(result.end), first_line(result.reason));
    case ResultEnd::finished:
      return value_of(result);
    default:
      return fmt::format("{}: {}", name_of(result.end), value_of(result));
  }
}

// "2 runs at a time with 1 thread each on 2 CPUs, the last one with 2"; the options have said it if
// no CPUs are divided.
std::string shares_text(const CpuShares& shares) {
  std::string words = fmt::format(
      "{} run{} at a time with {} thread{}{}", shares.at_once, shares.at_once == 1 ? "" : "s",
      shares.threads, shares.threads == 1 ? "" : "s", shares.at_once == 1 ? "" : " each");
  if (shares.cpus == 0) return words;
  words += fmt::format(" on {} CPU{}", shares.cpus, shares.cpus == 1 ? "" : "s");
  if (shares.last_threads == shares.threads) return words;
  const std::string last = shares.last == 1 ? "one" : fmt::to_string(shares.last);
  return words + fmt::format(", the last {} with {}", last, shares.last_threads);
}

}  // namespace

CompareProgress::CompareProgress(bool terminal) : terminal_(terminal), line_(print_out) {}

void CompareProgress::on_search(const SearchCost& cost) {
  least_runs_ = cost.least_runs();
  print_line(fmt::format(
      "no --lr: finding the rate that is best for {} takes at least {} runs{}; --lr X or --tune "
      "never skips it",
      cost.tune_for == TuneFor::each ? "each combination" : "the baseline", least_runs_,
      cost.steps ? fmt::format(" of {} steps", *cost.steps) : ""));
}

void CompareProgress::on_stage(const std::string& name, std::int64_t runs,
                               const std::vector<RunResult>& ended) {
  if (stage_ != name) reused_ = 0;
  if (stage_ != name && !stage_.empty()) least_runs_ = 0;
  stage_ = name;
  runs_ = runs;
  ended_ = std::ssize(ended);
  lost_ = missing_ = timed_ = 0;
  seconds_ = 0;
  running_.clear();
  for (const RunResult& result : ended) {
    lost_ += is_lost(result.end) ? 1 : 0;
    if (!result.has_value()) continue;
    seconds_ += result.wall_seconds;
    ++timed_;
  }
  print_line(fmt::format("{}: {} of {} are complete", name, ended_, runs));
}

void CompareProgress::on_shares(const CpuShares& shares) {
  jobs_ = shares.at_once;
  // The rounds of a search often have the same.
  const std::string before = std::exchange(shares_, shares_text(shares));
  if (shares_ != before) print_line(shares_);
}

void CompareProgress::on_start(const std::string& run) {
  running_.emplace(run, Stopwatch());
  draw();
}

void CompareProgress::on_end(const std::string& run, const RunResult& result, double seconds) {
  running_.erase(run);
  ++ended_;
  ++timed_;
  seconds_ += seconds;
  lost_ += is_lost(result.end) ? 1 : 0;
  if (terminal_ && result.end == ResultEnd::finished) {
    draw();
    return;
  }
  const std::string left = time_left();
  print_line(fmt::format("{}/{}  {}  {}  {}{}", ended_, runs_, run, outcome(result),
                         clock_time(seconds), left.empty() ? "" : "  " + left));
}

void CompareProgress::on_damaged(const std::string& run, const std::string& what,
                                 const std::filesystem::path& aside) {
  print_line(damage(run, what, aside));
}

void CompareProgress::on_missing(const std::string& run, const std::string& why) {
  running_.erase(run);
  ++missing_;
  print_line(fmt::format("{}  {}; it continues the next time", run, why));
}

void CompareProgress::on_same(const std::string& run, const std::string& machine) {
  print_line(fmt::format("{}  has the same result as on {}, which is kept", run, machine));
}

void CompareProgress::on_reused(const std::string& /*run*/) {
  ++reused_;
}

void CompareProgress::on_server_failed(const std::string& why) {
  print_line(fmt::format("the process that loads data for several runs: {}", why));
}

void CompareProgress::on_tick() {
  draw();
}

void CompareProgress::on_stage_end() {
  line_.clear();
  if (reused_ == 0) return;
  print_line(fmt::format("{} of {} runs {} taken over from other experiments", reused_, runs_,
                         reused_ == 1 ? "was" : "were"));
}

std::string CompareProgress::time_left() const {
  if (timed_ == 0) return {};
  const double each = seconds_ / static_cast<double>(timed_);
  const std::int64_t all = std::max(runs_, least_runs_);
  double work = each * static_cast<double>(all - ended_ - missing_);
  for (const auto& [name, since] : running_) work -= std::min(each, since.seconds());
  return fmt::format("{} left", clock_time(work / static_cast<double>(jobs_)));
}

std::string CompareProgress::line() const {
  std::vector<LineField> fields{{fmt::format("{} {}/{}", stage_, ended_, runs_), 7},
                                {fmt::format("{} running", running_.size()), 3}};
  if (lost_ > 0) fields.push_back({fmt::format("{} lost", lost_), 4});
  if (missing_ > 0) fields.push_back({fmt::format("{} missing", missing_), 5});
  if (const std::string left = time_left(); !left.empty()) fields.push_back({left, 6});
  const int columns = drawable_columns(STDOUT_FILENO);
  if (runs_ == 0) return fitting_line(std::move(fields), columns);
  const double done = static_cast<double>(ended_) / static_cast<double>(runs_);
  return line_with_bar(std::move(fields), columns, done, kNarrowestMeter);
}

void CompareProgress::print_line(const std::string& text) {
  line_.clear();
  print_text(text + '\n');
}

void CompareProgress::draw() {
  if (terminal_) line_.draw(line());
}

void NoProgress::on_damaged(const std::string& run, const std::string& what,
                            const std::filesystem::path& aside) {
  print_error(fmt::format("rubato compare: {}\n", damage(run, what, aside)));
}

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
  return std::make_unique<CompareProgress>(can_redraw(STDOUT_FILENO));
}

// The name of the run that --run means.
std::string named_run(const std::string& run, const Design& design,
                      const std::filesystem::path& folder, DataFacts& facts) {
  if (run.empty()) return run;
  const std::vector<std::string> names = names_of_runs(design, folder, facts);
  if (std::ranges::find(names, run) != names.end()) return run;
  if (run == kTuneFolder) return run;
  const auto accepted = fmt::format("1 to {}, or a name in {}", names.size(), kPlanFile);
  if (!is_number(run)) throw_error("--run: no run '{}'; accepted: {}", run, accepted);
  std::int64_t number = 0;
  try {
    number = parse_whole(run, 1, std::ssize(names));
  } catch (const Error&) {
    throw_error("--run: no run {}; accepted: {}", run, accepted);
  }
  return names[static_cast<std::size_t>(number - 1)];
}

// Says what the experiment lacks, and returns the exit code.
int report_missing(const CompareArguments& arguments, const ExperimentFolder& folder,
                   const Conducted& conducted) {
  for (const std::string& difference : conducted.differences) warn(difference);
  if (!conducted.awaited.empty()) {
    warn(fmt::format("--run: {} needs runs that have not ended: {}", arguments.run,
                     fmt::join(conducted.awaited, ", ")));
    return static_cast<int>(ExitCode::incomplete);
  }
  if (conducted.missing > 0) {
    const bool one = conducted.missing == 1;
    warn(fmt::format("{} run{} did not reach {} end; to continue: rubato compare --resume {}{}",
                     conducted.missing, one ? "" : "s", one ? "its" : "their",
                     shell_quoted(folder.path().string()),
                     arguments.run.empty() ? "" : " --run " + arguments.run));
  }
  if (!conducted.differences.empty()) return static_cast<int>(ExitCode::results_differ);
  return conducted.missing == 0 ? 0 : static_cast<int>(ExitCode::incomplete);
}

int report(const CompareArguments& arguments, const Design& design, const ExperimentFolder& folder,
           const Conducted& conducted, int signal) {
  if (signal != 0) {
    warn(fmt::format("stopped by a signal; to continue: rubato compare --resume {}",
                     shell_quoted(folder.path().string())));
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
  return report_missing(arguments, folder, conducted);
}

}  // namespace

int compare_command(std::span<const std::string> arguments) {
  const auto options = parse_compare_arguments(arguments);
  DataFacts facts;
  const Work work{.run = named_run(options.run, options.design, options.folder, facts),
                  .check = options.check,
                  .reuse = options.reuse};
  // Every mistake of the user is found before the folder is made. A single run belongs to a plan
  // that has been checked.
  if (work.run.empty()) {
    facts.require_runnable(plan_of(options.design).runs);
    for (const TuningCell& cell : tuning_of(options.design)) facts.require_runnable(cell.runs);
  }
  const ExperimentFolder folder(options.folder);
  const Design design = folder.adopt(options.design);
  if (work.run.empty()) {
    const std::vector<std::string> names = names_of_runs(design, folder.path(), facts);
    if (is_experiment(folder.path())) require_same_runs(design, folder, facts);
    folder.write_design(design);
    folder.write_plan(names);
    if (options.only_plan) {
      prepare_runs(design, folder, facts);
      if (!options.quiet) {
        print_text(fmt::format("{} runs are listed in {}\n", names.size(),
                               (folder.path() / kPlanFile).string()));
      }
      return 0;
    }
  }

  const StopSignals signals(kStopping);
  const PoolOptions pool{.program = kThisProgram,
                         .jobs = options.jobs,
                         .cpus = options.cpus,
                         .waits_for_others = work.run.empty() || work.run == kTuneFolder,
                         .stopping = [&] { return signals.received() != 0; }};
  const auto view = view_for(options);
  const Conducted conducted = conduct(design, folder, facts, pool, *view, work);
  return report(options, design, folder, conducted, signals.received());
}

}  // namespace rubato::app
