// evaluated() is the only place that knows the stages of an experiment: the runs that tune, round
// by round until tuning_after() has no more, the plan with the values that they have chosen, and
// the answer. Its argument TakeRuns either brings the runs of a stage to an end, or prepares them,
// or only reads what is there, and conduct(), prepare_runs() and read_experiment() differ only in
// it. No progress is recorded: a run is in the state that its files show (state_of()), so each call
// continues whatever was interrupted (docs/adr/0037).

#include "conduct.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/tensorboard.hpp>
#include <rubato/steps/plan.hpp>

#include "base/core/file.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "base/state/sha256.hpp"
#include "ended_runs.hpp"
#include "run_result.hpp"
#include "runs/config/chosen_parts.hpp"
#include "runs/experiment/answer/answer_columns.hpp"
#include "runs/experiment/answer/answer_document.hpp"
#include "runs/experiment/answer/rate_curves.hpp"
#include "runs/experiment/design/design.hpp"
#include "runs/experiment/design/design_file.hpp"
#include "runs/experiment/design/experiment_plan.hpp"
#include "runs/run/run_description.hpp"
#include "runs/run/workload/kept_workload.hpp"
#include "runs/run/workload/run_steps.hpp"
#include "runs/tensorboard/event_folder.hpp"
#include "shared_prefix.hpp"

namespace rubato {

namespace {

// The runs of a stage, of which each has a result and a measure.
struct RunsOfStage {
  std::vector<RunResult> results;
  std::vector<Measure> measures;
};

// Brings runs to an end, or reads those that have ended: a round of the runs that tune if there is
// no plan, or those of the plan. Returns nothing if the experiment cannot continue.
using TakeRuns = std::function<std::optional<RunsOfStage>(const std::vector<PlannedRun>& runs,
                                                          const ExperimentPlan* plan)>;

// Takes each run once, and returns the results of all: runs of the same name are equal.
std::optional<RunsOfStage> take_once(const TakeRuns& take, const std::vector<PlannedRun>& runs,
                                     const ExperimentPlan* plan) {
  std::vector<PlannedRun> different;
  std::map<std::string_view, std::size_t> numbers;
  for (const PlannedRun& run : runs) {
    if (numbers.try_emplace(run.name, different.size()).second) different.push_back(run);
  }
  const auto taken = take(different, plan);
  if (!taken) return std::nullopt;
  RunsOfStage all;
  for (const PlannedRun& run : runs) {
    all.results.push_back(taken->results[numbers.at(run.name)]);
    all.measures.push_back(taken->measures[numbers.at(run.name)]);
  }
  return all;
}

// Evaluates the runs of a design, stage by stage.
Conducted evaluated(const Design& design, const TakeRuns& take_different) {
  const auto take = [&](const std::vector<PlannedRun>& runs, const ExperimentPlan* plan) {
    return take_once(take_different, runs, plan);
  };
  Conducted conducted;
  if (design.tuning) {
    std::vector<TuningCell> tried;
    RunsOfStage all;
    std::vector<TuningCell> round = tuning_of(design);
    while (!round.empty()) {
      std::vector<PlannedRun> runs;
      for (const TuningCell& cell : round) std::ranges::copy(cell.runs, std::back_inserter(runs));
      const auto taken = take(runs, nullptr);
      if (!taken) return conducted;
      std::ranges::move(round, std::back_inserter(tried));
      std::ranges::copy(taken->results, std::back_inserter(all.results));
      std::ranges::copy(taken->measures, std::back_inserter(all.measures));
      conducted.tuning = tuning_answer(design, tried, all.results, all.measures);
      round = tuning_after(design, conducted.tuning);
    }
    require_tuned(design, conducted.tuning);
  }
  const ExperimentPlan plan = plan_of(design, taken_of(conducted.tuning));
  if (const auto taken = take(plan.runs, &plan)) {
    conducted.answer =
        answer_of(plan, taken->results, taken->measures, design.target, design.margin);
    conducted.answer->untuned = untuned_rate(design);
    conducted.answer->rates = rate_curves(plan, *conducted.answer, taken->results);
  }
  return conducted;
}

std::string name_in_list(const std::string& run, bool tuning) {
  return tuning ? fmt::format("{}{}", kTuneMark, run) : run;
}

// Adds the names of the plan's runs to those of the runs that tune.
std::vector<std::string> with_names_of_plan(std::vector<std::string> tuning, const Design& design) {
  std::ranges::move(names_of_runs(design, {}), std::back_inserter(tuning));
  return tuning;
}

// The runs of a design that are done again to check this share of those that are known in advance.
// They have the smallest hashes of their names, so that they are the same in every call and on
// every machine.
std::set<std::string> checked_runs(const Design& design, double share) {
  auto runs = vector_of(names_of_runs(design), [](const std::string& name) {
    return std::pair(Sha256::hex_of(name), name);
  });
  std::ranges::sort(runs);
  runs.resize(static_cast<std::size_t>(std::ceil(share * static_cast<double>(runs.size()))));
  std::set<std::string> checked;
  for (const auto& [hash, name] : runs) checked.insert(name);
  return checked;
}

// Executes the runs of a stage together, or one of them.
class Stage final : public PoolObserver {
 public:
  Stage(const ExperimentFolder& folder, bool tuning, std::vector<PlannedRun> all, DataFacts& facts,
        ExperimentView& view, const std::string& only = {}, const EndedRuns* others = nullptr)
      : folder_(folder), tuning_(tuning), view_(view) {
    const auto shared = shared_prefixes(all, facts);
    for (const auto& prefix : shared) {
      if (prefix) keep_prefix(all[prefix->trained_by].configuration, prefix->steps);
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      const PlannedRun& run = all[i];
      if (!only.empty() && name_in_list(run.name, tuning) != only) continue;
      measures_.push_back(facts.measure_of(run.configuration));
      RunTask task{.name = run.name,
                   .files = folder.files_of(run, tuning),
                   .threads = run.configuration.threads,
                   .is_exact = run.configuration.exact,
                   .workload = workload_text(run.configuration),
                   .is_pythons = !own_rule_name(run.configuration.rule.text()).empty()};
      folder.prepare(run, task.files);
      if (others != nullptr && state_of(task.files) == RunState::absent) {
        task.equal = others->equal_to(run.configuration, measures_.back());
      }
      if (shared[i]) {
        const PlannedRun& of = all[shared[i]->trained_by];
        const std::int64_t steps = shared[i]->steps;
        const std::filesystem::path place = folder.shared_steps_of(of, steps);
        task.prefix = {.run = folder.files_of(of, tuning),
                       .steps = steps,
                       .shared = place,
                       .config = folder.prepare_fork(run, task.files, place, steps)};
      }
      tasks_.push_back(std::move(task));
    }
    results_.resize(tasks_.size());
  }

  // `before` are the results of the earlier rounds of the stage.
  void work(const std::string& name, const PoolOptions& options,
            const std::vector<RunResult>& before) {
    std::vector<RunResult> ended = before;
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      const RunResult& result = this->result(i);
      if (result.end != ResultEnd::missing) {
        ended.push_back(result);
      } else if (!result.reason.empty()) {
        view_.on_damaged(tasks_[i].name, result.reason,
                         folder_.worker().set_aside(tasks_[i].files));
      }
    }
    const std::int64_t all = std::ssize(before) + std::ssize(tasks_);
    // A search that has been done has many rounds, of which there is nothing to say.
    if (tuning_ && std::ssize(ended) == all) return;
    view_.on_stage(name, all, ended);
    execute(tasks_, options, folder_.worker(), *this);
    view_.on_stage_end();
  }

  // Does those runs of `names` again that have ended with a result.
  void check(const std::set<std::string>& names, const PoolOptions& options) {
    std::vector<RunTask> checked;
    for (const RunTask& task : tasks_) {
      if (!names.contains(name_in_list(task.name, tuning_)) || task.is_pythons) continue;
      if (state_of(task.files) != RunState::ended) continue;
      checked.push_back(task);
      checked.back().is_check = true;
    }
    if (checked.empty()) return;
    view_.on_stage("checks", std::ssize(checked), {});
    execute(checked, options, folder_.worker(), *this);
    view_.on_stage_end();
  }

  [[nodiscard]] RunsOfStage results() && {
    for (std::size_t i = 0; i < tasks_.size(); ++i) static_cast<void>(result(i));
    return {.results = std::move(results_), .measures = std::move(measures_)};
  }
  [[nodiscard]] std::int64_t missing() const { return missing_; }
  [[nodiscard]] const std::vector<Measure>& measures() const { return measures_; }

  void on_shares(const CpuShares& shares) override { view_.on_shares(shares); }
  void on_start(const RunTask& task) override { view_.on_start(task.name); }
  void on_end(const RunTask& task, TaskEnd end, double seconds, const std::string& why) override {
    const RunResult result = end == TaskEnd::missing
                                 ? RunResult{.end = ResultEnd::missing, .reason = why}
                                 : this->result(number_of(task));
    if (result.end == ResultEnd::missing) {
      ++missing_;
      view_.on_missing(task.name, result.reason);
      return;
    }
    view_.on_end(task.name, result, seconds);
  }
  void on_second(const RunTask& task, const Publication& publication) override {
    if (publication.kind == Publication::Kind::same) view_.on_same(task.name, publication.machine);
  }
  void on_reused(const RunTask& task) override { view_.on_reused(task.name); }
  void on_server_failed(const std::string& why) override { view_.on_server_failed(why); }
  void on_tick() override { view_.on_tick(); }

 private:
  [[nodiscard]] std::size_t number_of(const RunTask& task) const {
    const auto found = std::ranges::find(tasks_, task.name, &RunTask::name);
    return static_cast<std::size_t>(found - tasks_.begin());
  }
  // A result is read once, as nothing replaces it.
  [[nodiscard]] const RunResult& result(std::size_t run) {
    RunResult& known = results_[run];
    if (known.end == ResultEnd::missing) known = result_of(tasks_[run].files, measures_[run]);
    return known;
  }

  const ExperimentFolder& folder_;
  bool tuning_;
  ExperimentView& view_;
  std::vector<Measure> measures_;
  std::vector<RunTask> tasks_;
  std::vector<RunResult> results_;
  std::int64_t missing_ = 0;
};

// Reads the results of runs in the folder of an experiment, and adds the names of those without one
// to `missing`.
RunsOfStage read_runs(const std::filesystem::path& folder, const std::vector<PlannedRun>& runs,
                      bool tuning, DataFacts& facts, std::vector<std::string>& missing) {
  RunsOfStage found;
  for (const PlannedRun& run : runs) {
    found.measures.push_back(facts.measure_of(run.configuration));
    found.results.push_back(result_of(files_of(folder, run.name, tuning), found.measures.back()));
    if (found.results.back().end != ResultEnd::missing) continue;
    missing.push_back(name_in_list(run.name, tuning));
  }
  return found;
}

// Reads a round of the runs that tune; empty if one of them has not ended.
std::optional<RunsOfStage> read_round(const std::filesystem::path& folder,
                                      const std::vector<PlannedRun>& runs, DataFacts& facts) {
  std::vector<std::string> missing;
  RunsOfStage found = read_runs(folder, runs, true, facts, missing);
  return missing.empty() ? std::optional(std::move(found)) : std::nullopt;
}

// The number of steps of a run that its epochs alone limit; empty if it is not known in advance.
std::optional<std::int64_t> epoch_steps_of(const RunConfiguration& run, std::int64_t samples) {
  if (run.samples || run.iterations || run.hours || run.money) return std::nullopt;
  const RunSteps steps = load_run_steps(run);
  const Trace* const trace = std::get_if<Trace>(&steps);
  if (trace == nullptr) return std::nullopt;
  Planner planner(*trace, plan_options(run, samples, 1));
  const std::optional<EpochPlan> first = planner.next();
  if (!first) return std::nullopt;
  return std::ssize(first->steps) * run.epochs;
}

// The number of subjects of tuning whose runs are not those of an earlier one.
std::int64_t different_subjects(const Design& design) {
  std::map<std::string, std::size_t> first;
  for (const TuningCell& cell : tuning_of(design)) {
    first.try_emplace(cell.runs.front().name, cell.subject);
  }
  std::set<std::size_t> different;
  for (const auto& [run, subject] : first) different.insert(subject);
  return std::ssize(different);
}

// The number of steps that each of the runs has; empty if it is not the same or not known.
std::optional<std::int64_t> epoch_steps_of(const std::vector<PlannedRun>& runs, DataFacts& facts) {
  const auto steps_of = [&](const PlannedRun& run) {
    return epoch_steps_of(run.configuration, facts.samples_of(run.configuration));
  };
  const std::optional<std::int64_t> first = steps_of(runs.front());
  const bool is_same = first && std::ranges::all_of(runs, [&](const PlannedRun& run) {
                         return steps_of(run) == first;
                       });
  return is_same ? first : std::nullopt;
}

}  // namespace

std::vector<std::string> names_of_runs(const Design& design, const std::filesystem::path& folder,
                                       DataFacts& facts) {
  std::vector<std::string> names;
  const auto take = [&](const std::vector<PlannedRun>& runs,
                        const ExperimentPlan* plan) -> std::optional<RunsOfStage> {
    if (plan != nullptr) return std::nullopt;
    for (const PlannedRun& run : runs) names.push_back(name_in_list(run.name, true));
    return read_round(folder, runs, facts);
  };
  try {
    static_cast<void>(evaluated(design, take));
  } catch (const Error&) {
    // No value of the option is of any use, which conduct() says.
  }
  return with_names_of_plan(std::move(names), design);
}

Conducted conduct(const Design& design, const ExperimentFolder& folder, DataFacts& facts,
                  const PoolOptions& options, ExperimentView& view, const Work& work) {
  const std::string tuned = design.tuning ? design.tuning->option : std::string();
  const bool only_tunes = work.run == kTuneFolder;
  const std::string single = only_tunes ? "" : work.run;
  const bool is_single = !single.empty();
  const std::set<std::string> checked =
      work.check > 0 ? checked_runs(design, work.check) : std::set<std::string>();
  std::optional<EndedRuns> others;
  if (!work.reuse.empty()) others.emplace(absolute_path(work.reuse));
  const auto is_stopped = [&] { return options.stopping && options.stopping(); };
  std::int64_t missing = 0;
  std::vector<std::string> awaited;
  // The results of the rounds of tuning so far.
  std::vector<RunResult> tuned_by;
  // The names of their runs, and of those of this round.
  std::vector<std::string> names;
  bool is_announced = false;
  // Says what a search costs, and lists its runs as they become known.
  const auto announce = [&](const std::vector<PlannedRun>& round) {
    for (const PlannedRun& run : round) names.push_back(name_in_list(run.name, true));
    const bool is_done = std::ranges::all_of(
        round, [&](const PlannedRun& run) { return has_result(folder.files_of(run, true)); });
    if (is_done) return;
    if (!tuned_by.empty()) folder.write_plan(with_names_of_plan(names, design));
    if (!design.tuning->is_search() || std::exchange(is_announced, true)) return;
    view.on_search({.tune_for = design.tune_for,
                    .subjects = different_subjects(design),
                    .seeds = design.tuning_seeds,
                    .steps = epoch_steps_of(round, facts)});
  };
  const auto train = [&](const std::vector<PlannedRun>& runs,
                         const ExperimentPlan* plan) -> std::optional<RunsOfStage> {
    const bool tuning = plan == nullptr;
    if (!tuning && only_tunes) return std::nullopt;
    const bool is_of_round = std::ranges::any_of(
        runs, [&](const PlannedRun& run) { return name_in_list(run.name, tuning) == single; });
    if (is_single && tuning && !is_of_round) {
      RunsOfStage found = read_runs(folder.path(), runs, tuning, facts, awaited);
      return awaited.empty() ? std::optional(std::move(found)) : std::nullopt;
    }
    if (tuning && !is_single) announce(runs);
    Stage stage(folder, tuning, runs, facts, view, single, others ? &*others : nullptr);
    if (!tuning && !is_single) {
      write_tensorboard_columns(folder, *plan, tuned, stage.measures().front());
    }
    stage.work(tuning ? fmt::format("tuning {}", tuned) : "runs", options,
               tuning && !is_single ? tuned_by : std::vector<RunResult>());
    if (!is_stopped()) stage.check(checked, options);
    missing += stage.missing();
    if (is_single || is_stopped() || (tuning && missing > 0)) return std::nullopt;
    RunsOfStage done = std::move(stage).results();
    if (tuning) std::ranges::copy(done.results, std::back_inserter(tuned_by));
    return done;
  };
  Conducted conducted = evaluated(design, train);
  conducted.missing = missing;
  conducted.awaited = std::move(awaited);
  conducted.differences = differences_in(folder.path(), single);
  if (!is_single) folder.worker().clean_up();
  return conducted;
}

void require_same_runs(const Design& design, const ExperimentFolder& folder, DataFacts& facts) {
  // The subjects for which there are runs with a tuned value.
  std::set<std::size_t> tuned;
  for (const PlannedRun& run : plan_of(design).runs) {
    if (is_there(folder.files_of(run, false).config)) tuned.insert(run.subject);
  }
  const auto check = [&](const std::vector<PlannedRun>& runs,
                         const ExperimentPlan* plan) -> std::optional<RunsOfStage> {
    const bool tuning = plan == nullptr;
    for (const PlannedRun& run : runs) {
      const RunFiles files = folder.files_of(run, tuning);
      folder.require_same(run, files);
      if (!tuning || !tuned.contains(run.subject) || is_there(files.config)) continue;
      throw_error(
          "{}: has runs with the {} that was tuned without the run {}, which may change it\n"
          "accepted: the same --tune and --tune-seeds, or another --out",
          folder.path().string(), design.tuning->option, name_in_list(run.name, tuning));
    }
    return tuning ? read_round(folder.path(), runs, facts) : std::nullopt;
  };
  static_cast<void>(evaluated(design, check));
}

void prepare_runs(const Design& design, const ExperimentFolder& folder, DataFacts& facts) {
  class : public ExperimentView {
    void on_damaged(const std::string&, const std::string&, const std::filesystem::path&) override {
    }
  } nobody;
  // Nothing is trained, so it ends with the first stage of which a run has no result.
  const auto prepare = [&](const std::vector<PlannedRun>& runs,
                           const ExperimentPlan* plan) -> std::optional<RunsOfStage> {
    const Stage prepared(folder, plan == nullptr, runs, facts, nobody);
    return plan == nullptr ? read_round(folder.path(), runs, facts) : std::nullopt;
  };
  static_cast<void>(evaluated(design, prepare));
}

void write_answer(const ExperimentFolder& folder, const Design& design,
                  const Conducted& conducted) {
  const Answer& answer = *conducted.answer;
  folder.write("answer.md", to_markdown(document_of(design, answer, conducted.tuning)));
  folder.write("answer.csv", cells_csv(answer));
  folder.write("runs.csv", runs_csv(answer));
  folder.write(kAnswerFile, to_json(design, answer, conducted.tuning));
}

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
  return vector_of(tuning,
                   [](const TuningAnswer& tuned) { return tuned.values[tuned.best].value; });
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
  const auto take = [&](const std::vector<PlannedRun>& runs, const ExperimentPlan* plan) {
    std::vector<std::string> missing;
    RunsOfStage found = read_runs(folder, runs, plan == nullptr, facts, missing);
    if (plan == nullptr && !missing.empty()) {
      throw_error(
          "{}: the run {}, which tunes {}, has not ended; accepted: the experiment after rubato "
          "compare --resume {}",
          folder.string(), missing.front().substr(kTuneMark.size()), read.design.tuning->option,
          shell_quoted(folder.string()));
    }
    return std::optional(std::move(found));
  };
  Conducted conducted = evaluated(read.design, take);
  read.tuning = std::move(conducted.tuning);
  read.answer = *std::move(conducted.answer);
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
  if (any_run(plan, [](const auto& run) { return run.price->costs(); })) {
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
