#include "conduct.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/tensorboard.hpp>

#include "base/core/file.hpp"
#include "base/core/text/text.hpp"
#include "run_result.hpp"
#include "runs/config/chosen_parts.hpp"
#include "runs/experiment/answer/answer_columns.hpp"
#include "runs/experiment/answer/answer_document.hpp"
#include "runs/experiment/design/design.hpp"
#include "runs/experiment/design/design_file.hpp"
#include "runs/experiment/design/experiment_plan.hpp"
#include "runs/run/run_description.hpp"
#include "runs/tensorboard/event_folder.hpp"

namespace rubato {

namespace {

// The runs of a stage, which are executed together.
class Stage final : public PoolObserver {
 public:
  Stage(const ExperimentFolder& folder, bool tuning, std::vector<PlannedRun> runs, DataFacts& facts,
        ExperimentView& view)
      : folder_(folder), runs_(std::move(runs)), view_(view) {
    for (const PlannedRun& run : runs_) {
      measures_.push_back(facts.measure_of(run.configuration));
      tasks_.push_back({.name = run.name,
                        .files = folder.files_of(run, tuning),
                        .threads = run.configuration.threads,
                        .is_pythons = !own_rule_name(run.configuration.rule).empty()});
    }
    for (std::size_t i = 0; i < runs_.size(); ++i) folder.prepare(runs_[i], tasks_[i].files);
  }

  void work(const std::string& name, const PoolOptions& options) {
    std::vector<RunResult> ended;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      RunResult result = this->result(i);
      if (result.end != ResultEnd::missing) {
        ended.push_back(std::move(result));
      } else if (!result.reason.empty()) {
        view_.on_damaged(runs_[i].name, result.reason, folder_.set_aside(tasks_[i].files));
      }
    }
    view_.on_stage(name, std::ssize(runs_), ended);
    execute(tasks_, options, *this);
    view_.on_stage_end();
  }

  [[nodiscard]] std::vector<RunResult> results() const {
    std::vector<RunResult> results;
    for (std::size_t i = 0; i < runs_.size(); ++i) results.push_back(result(i));
    return results;
  }
  [[nodiscard]] std::int64_t missing() const { return missing_; }
  [[nodiscard]] const std::vector<Measure>& measures() const { return measures_; }

  void on_start(const RunTask& task) override { view_.on_start(task.name); }
  void on_end(const RunTask& task, TaskEnd end, double seconds, const std::string& why) override {
    if (end == TaskEnd::missing) {
      ++missing_;
      view_.on_missing(task.name, why);
      return;
    }
    const RunResult result = this->result(static_cast<std::size_t>(&task - tasks_.data()));
    if (result.end == ResultEnd::missing) {
      ++missing_;
      view_.on_missing(task.name, result.reason);
      return;
    }
    view_.on_end(task.name, result, seconds);
  }
  void on_tick() override { view_.on_tick(); }

 private:
  [[nodiscard]] RunResult result(std::size_t run) const {
    return result_of(tasks_[run].files, measures_[run]);
  }

  const ExperimentFolder& folder_;
  std::vector<PlannedRun> runs_;
  ExperimentView& view_;
  std::vector<Measure> measures_;
  std::vector<RunTask> tasks_;
  std::int64_t missing_ = 0;
};

bool is_stopped(const PoolOptions& options) {
  return options.stopping && options.stopping();
}

// Returns false if it was stopped, or if a run is missing.
bool tune(const Design& design, const ExperimentFolder& folder, DataFacts& facts,
          const PoolOptions& options, ExperimentView& view, Conducted& conducted) {
  const std::vector<TuningCell> cells = tuning_of(design);
  std::vector<PlannedRun> runs;
  for (const TuningCell& cell : cells) runs.insert(runs.end(), cell.runs.begin(), cell.runs.end());
  Stage stage(folder, true, std::move(runs), facts, view);
  stage.work(fmt::format("tuning {}", design.tuning->option), options);
  conducted.missing += stage.missing();
  if (is_stopped(options) || stage.missing() > 0) return false;
  conducted.tuning =
      tuning_answer(design, cells, plan_of(design).settings, stage.results(), stage.measures());
  return true;
}

}  // namespace

Conducted conduct(const Design& design, const ExperimentFolder& folder, DataFacts& facts,
                  const PoolOptions& options, ExperimentView& view) {
  Conducted conducted;
  if (design.tuning && !tune(design, folder, facts, options, view, conducted)) return conducted;
  const ExperimentPlan plan = plan_of(design, taken_of(conducted.tuning));
  Stage stage(folder, false, plan.runs, facts, view);
  write_tensorboard_columns(folder, plan, design.tuning ? design.tuning->option : std::string(),
                            stage.measures().front());
  stage.work("runs", options);
  conducted.missing += stage.missing();
  if (is_stopped(options)) return conducted;
  conducted.answer = answer_of(plan, stage.results(), stage.measures(), design.target);
  return conducted;
}

void write_answer(const ExperimentFolder& folder, const Design& design,
                  const Conducted& conducted) {
  const Answer& answer = *conducted.answer;
  folder.write("answer.md", to_markdown(document_of(design, answer, conducted.tuning)));
  folder.write("answer.csv", cells_csv(answer));
  folder.write("runs.csv", runs_csv(answer));
  folder.write(kAnswerFile, to_json(design, answer, conducted.tuning));
}

namespace {

struct RecordedRuns {
  std::vector<RunResult> results;
  std::vector<Measure> measures;
};

RecordedRuns read_runs(const std::filesystem::path& folder, std::span<const PlannedRun> runs,
                       bool tuning, DataFacts& facts) {
  RecordedRuns read;
  for (const PlannedRun& run : runs) {
    read.measures.push_back(facts.measure_of(run.configuration));
    read.results.push_back(result_of(files_of(folder, run.name, tuning), read.measures.back()));
  }
  return read;
}

std::vector<TuningAnswer> read_tuning(const std::filesystem::path& folder, const Design& design,
                                      DataFacts& facts) {
  const std::vector<TuningCell> cells = tuning_of(design);
  std::vector<PlannedRun> runs;
  for (const TuningCell& cell : cells) runs.insert(runs.end(), cell.runs.begin(), cell.runs.end());
  const RecordedRuns read = read_runs(folder, runs, /*tuning=*/true, facts);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (read.results[i].end != ResultEnd::missing) continue;
    throw Error(fmt::format(
        "{}: the run {}, which tunes {}, has not ended; accepted: the experiment after rubato "
        "compare --resume {}",
        folder.string(), runs[i].name, design.tuning->option, shell_quoted(folder.string())));
  }
  return tuning_answer(design, cells, plan_of(design).settings, read.results, read.measures);
}

}  // namespace

RunResult result_of(const RunFiles& files, const Measure& measure) {
  switch (state_of(files)) {
    case RunState::ended:
      try {
        return read_result(files.folder, measure);
      } catch (const Error& error) {
        return {.end = ResultEnd::missing, .reason = error.what()};
      }
    case RunState::failed:
      return read_failure(files.failed);
    case RunState::begun:
    case RunState::absent:
      break;
  }
  return {};
}

std::vector<std::string> taken_of(const std::vector<TuningAnswer>& tuning) {
  std::vector<std::string> taken;
  taken.reserve(tuning.size());
  for (const TuningAnswer& tuned : tuning) taken.push_back(tuned.values[tuned.best].value);
  return taken;
}

bool is_experiment(const std::filesystem::path& folder) {
  return is_there(folder / kDesignFile);
}

bool has_answer(const std::filesystem::path& folder) {
  return is_there(folder / kAnswerFile);
}

RecordedExperiment read_experiment(const std::filesystem::path& folder) {
  RecordedExperiment read{.design = read_design(folder / kDesignFile).design, .answer = {}};
  DataFacts facts;
  if (read.design.tuning) read.tuning = read_tuning(folder, read.design, facts);
  const ExperimentPlan plan = plan_of(read.design, taken_of(read.tuning));
  const auto [results, measures] = read_runs(folder, plan.runs, /*tuning=*/false, facts);
  read.answer = answer_of(plan, results, measures, read.design.target);
  return read;
}

namespace {

template <class Predicate>
bool any_run(const ExperimentPlan& plan, const Predicate& is_so) {
  return std::ranges::any_of(plan.runs,
                             [&](const PlannedRun& run) { return is_so(run.configuration); });
}

}  // namespace

TensorBoardColumns tensorboard_columns(const ExperimentPlan& plan, const std::string& tuned,
                                       const Measure& measure) {
  std::set<std::string> shown;
  for (const PlannedRun& run : plan.runs) {
    for (const Hyperparameter& each : hyperparameters_of(run.configuration)) {
      shown.insert(each.name);
    }
  }
  TensorBoardColumns columns;
  std::vector<std::string> options = plan.columns;
  if (!tuned.empty()) options.push_back(tuned);
  options.emplace_back(kSeedOption);
  for (const std::string& option : options) {
    // Runs do not report options that do not affect results, such as --threads. Erasing the name
    // makes an axis that is tuned as well appear in one column only.
    if (shown.erase(option) == 0) continue;
    columns.hyperparameters.push_back(hyperparameter_column(option));
  }
  if (measure.is_accuracy) columns.metrics.emplace_back("test/accuracy");
  columns.metrics.emplace_back("test/loss");
  if (any_run(plan, [](const auto& run) { return run.clock == Clock::modelled; })) {
    columns.metrics.emplace_back("clock/hours");
  }
  if (any_run(plan, [](const auto& run) { return run.price > 0; })) {
    columns.metrics.emplace_back("clock/money");
  }
  return columns;
}

void write_tensorboard_columns(const ExperimentFolder& folder, const ExperimentPlan& plan,
                               const std::string& tuned, const Measure& measure) {
  if (!any_run(plan, [](const auto& run) { return run.tensorboard; })) return;
  const TensorBoardColumns columns = tensorboard_columns(plan, tuned, measure);
  EventFolder files(folder.runs());
  files.remove_all();
  EventFile file(files.next());
  file.write_experiment(columns.hyperparameters, columns.metrics);
  file.sync();
}

}  // namespace rubato
