#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data_facts.hpp"
#include "experiment_folder.hpp"
#include "run_pool.hpp"
#include "runs/experiment/answer/answer.hpp"
#include "runs/experiment/design/design.hpp"

namespace rubato {

/// Receives the progress of an experiment.
class ExperimentView {
 public:
  ExperimentView() = default;
  virtual ~ExperimentView() = default;
  ExperimentView(const ExperimentView&) = delete;
  ExperimentView& operator=(const ExperimentView&) = delete;

  /// Called when a stage ("tuning lr", "runs") begins; `ended` are the results of those of its runs
  /// that have ended already.
  virtual void on_stage(const std::string& name, std::int64_t runs,
                        const std::vector<RunResult>& ended) = 0;
  virtual void on_start(const std::string& run) = 0;
  virtual void on_end(const std::string& run, const RunResult& result, double seconds) = 0;
  /// Called when a run that had ended is repeated because its folder was changed since, as
  /// described by `what`; the folder has been moved to `aside`.
  virtual void on_damaged(const std::string& run, const std::string& what,
                          const std::filesystem::path& aside) = 0;
  /// Called when a run is missing, with the reason in words; the next call of conduct() continues
  /// it.
  virtual void on_missing(const std::string& run, const std::string& why) = 0;
  /// Called several times a second.
  virtual void on_tick() = 0;
  virtual void on_stage_end() = 0;
};

/// The result of conducting an experiment.
struct Conducted {
  /// Number of runs that were killed or could not be written; the next call continues them.
  std::int64_t missing = 0;
  /// Empty if conduct() was stopped, or if a run that tunes is missing.
  std::optional<Answer> answer{};
  std::vector<TuningAnswer> tuning{};
};

/// Runs everything that is left to do of `design`, which `folder` must have adopted. Throws Error
/// if the folder has runs with other options, or if no value of the tuned option brought its runs
/// to an end.
[[nodiscard]] Conducted conduct(const Design& design, const ExperimentFolder& folder,
                                DataFacts& facts, const PoolOptions& options, ExperimentView& view);

/// Writes answer.md, answer.csv, runs.csv and answer.json into the folder. Throws OutputError.
void write_answer(const ExperimentFolder& folder, const Design& design, const Conducted& conducted);

}  // namespace rubato
