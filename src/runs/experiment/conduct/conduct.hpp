#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <rubato/runs/tensorboard.hpp>

#include "experiment_folder.hpp"
#include "run_pool.hpp"
#include "run_result.hpp"
#include "runs/experiment/answer/answer.hpp"
#include "runs/experiment/answer/tuning_answer.hpp"
#include "runs/experiment/design/design.hpp"
#include "runs/experiment/design/experiment_plan.hpp"
#include "runs/experiment/design/rate_search.hpp"

namespace rubato {

/// The cost of a search for the learning rate, as far as it is known before it begins.
struct SearchCost {
  TuneFor tune_for = TuneFor::baseline;
  /// Number of subjects for each of which it is done, and of runs for each rate; it tries at least
  /// kFewestTried.
  std::int64_t subjects = 1;
  std::int64_t seeds = 1;
  /// Steps of each run; empty if they differ or are not known in advance.
  std::optional<std::int64_t> steps{};

  [[nodiscard]] std::int64_t least_runs() const { return kFewestTried * subjects * seeds; }
};

/// Receives the progress of an experiment, and ignores all of it but damaged runs.
class ExperimentView {
 public:
  ExperimentView() = default;
  virtual ~ExperimentView() = default;
  ExperimentView(const ExperimentView&) = delete;
  ExperimentView& operator=(const ExperimentView&) = delete;

  /// Called before the first run of a search for the learning rate.
  virtual void on_search(const SearchCost& /*cost*/) {}
  /// Called when a stage ("tuning lr", "runs") or a further round of tuning begins; `runs` counts
  /// those of earlier rounds, and `ended` are the results of those that have ended already.
  virtual void on_stage(const std::string& /*name*/, std::int64_t /*runs*/,
                        const std::vector<RunResult>& /*ended*/) {}
  /// Called after on_stage() if there is something to do.
  virtual void on_shares(const CpuShares& /*shares*/) {}
  virtual void on_start(const std::string& /*run*/) {}
  virtual void on_end(const std::string& /*run*/, const RunResult& /*result*/, double /*seconds*/) {
  }
  /// Called when a run that had ended is repeated because its folder was changed since, as
  /// described by `what`; the folder has been moved to `aside`.
  virtual void on_damaged(const std::string& run, const std::string& what,
                          const std::filesystem::path& aside) = 0;
  /// Called when a run is missing, with the reason in words; the next call of conduct() continues
  /// it.
  virtual void on_missing(const std::string& /*run*/, const std::string& /*why*/) {}
  /// Called when a run has been trained that had a result, which is the same; `machine` made it.
  virtual void on_same(const std::string& /*run*/, const std::string& /*machine*/) {}
  /// Called before on_end() if the run was not trained, but taken over from another experiment.
  virtual void on_reused(const std::string& /*run*/) {}
  /// Called when the process has failed that loads data for several runs, as described by `why`.
  virtual void on_server_failed(const std::string& /*why*/) {}
  /// Called several times a second.
  virtual void on_tick() {}
  virtual void on_stage_end() {}
};

/// The work that conduct() is to do.
struct Work {
  /// A run of names_of_runs(), to be done alone and without an answer; "tune" for all that tune;
  /// empty for all of them.
  std::string run{};
  /// Share of the runs of the experiment to be done again, from 0 to 1: always the same ones, at
  /// least one if it is above 0.
  double check = 0;
  /// A folder of experiments, or one of them, whose equal runs are taken over; empty for none.
  std::filesystem::path reuse{};
};

/// The result of conducting an experiment.
struct Conducted {
  /// Number of runs that were killed or could not be written; the next call continues them.
  std::int64_t missing = 0;
  /// Names of runs that tune and that the run of Work needs, but that have not ended.
  std::vector<std::string> awaited{};
  /// The results that differ from the first ones of their runs, in words (differences_in()).
  std::vector<std::string> differences{};
  /// Empty if conduct() was stopped, if a run that tunes is missing, and for a single run.
  std::optional<Answer> answer{};
  std::vector<TuningAnswer> tuning{};
};

/// Runs everything that is left to do of `design`, which `folder` must have adopted, or of a part
/// of it. Throws Error if the folder has runs with other options, or if no value of the tuned
/// option brought its runs to an end (require_tuned()).
[[nodiscard]] Conducted conduct(const Design& design, const ExperimentFolder& folder,
                                DataFacts& facts, const PoolOptions& options, ExperimentView& view,
                                const Work& work = {});

/// Checks that the runs of the folder that the design has, as far as they are known, differ from
/// its own at most in options that do not affect results, and that nothing is left to be tuned for
/// them. Writes nothing, so that a design which the folder cannot have replaces none. Throws Error,
/// also if nothing can be tuned.
void require_same_runs(const Design& design, const ExperimentFolder& folder, DataFacts& facts);

/// Writes the configurations of the runs that can be done now: those that tune, as far as they are
/// known, or all of the plan once these have ended. Throws Error if the folder has runs with other
/// options, or if nothing can be tuned.
void prepare_runs(const Design& design, const ExperimentFolder& folder, DataFacts& facts);

/// Writes answer.md, answer.csv, runs.csv and answer.json into the folder. Throws OutputError.
void write_answer(const ExperimentFolder& folder, const Design& design, const Conducted& conducted);

/// The result of a run. A run that has not ended is missing, and so is one whose results have been
/// damaged since; RunResult::reason then says how.
[[nodiscard]] RunResult result_of(const RunFiles& files, const Measure& measure);

/// The names of all runs that are known: those that tune, as far as the results in the folder say
/// which, with kTuneMark, and then those of the plan.
[[nodiscard]] std::vector<std::string> names_of_runs(const Design& design,
                                                     const std::filesystem::path& folder,
                                                     DataFacts& facts);

/// The values that tuning has chosen, subject by subject.
[[nodiscard]] std::vector<std::string> taken_of(const std::vector<TuningAnswer>& tuning);

/// An experiment, as read from its folder.
struct RecordedExperiment {
  Design design;
  std::vector<TuningAnswer> tuning{};
  Answer answer;
};

[[nodiscard]] bool is_experiment(const std::filesystem::path& folder);
/// Whether the folder contains the answer, which is written once the runs have ended.
[[nodiscard]] bool has_answer(const std::filesystem::path& folder);

/// Reads the folder of an experiment, whether or not all of its runs have ended, and evaluates the
/// runs so far as conduct() does. Runs, locks and writes nothing. Throws Error if the design, its
/// data or a run that tunes cannot be read.
[[nodiscard]] RecordedExperiment read_experiment(const std::filesystem::path& folder);

/// The columns of HPARAMS, TensorBoard's table of runs.
struct TensorBoardColumns {
  /// The options that tell the runs apart: trace, rule, the other axes, the tuned option, and the
  /// seed.
  std::vector<HyperparameterColumn> hyperparameters{};
  /// The tags of the quantities that the answer is about.
  std::vector<std::string> metrics{};
};

/// The columns of an experiment's table. `tuned` is the option that was tuned; empty if none was.
[[nodiscard]] TensorBoardColumns tensorboard_columns(const ExperimentPlan& plan,
                                                     const std::string& tuned,
                                                     const Measure& measure);

/// Writes the columns into an event file in the folder of the runs, replacing an earlier one; does
/// nothing if no run writes event files. Throws OutputError.
void write_tensorboard_columns(const ExperimentFolder& folder, const ExperimentPlan& plan,
                               const std::string& tuned, const Measure& measure);

}  // namespace rubato
