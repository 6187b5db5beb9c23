#include "conduct.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "recorded_experiment.hpp"
#include "runs/config/chosen_parts.hpp"
#include "runs/experiment/answer/answer_document.hpp"
#include "runs/experiment/answer/answer_files.hpp"
#include "tensorboard_columns.hpp"

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
      if (result.end != RunEnd::missing) {
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
    if (result.end == RunEnd::missing) {
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

}  // namespace rubato
