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

/// Is told how an experiment goes on.
class ExperimentView {
 public:
  ExperimentView() = default;
  virtual ~ExperimentView() = default;
  ExperimentView(const ExperimentView&) = delete;
  ExperimentView& operator=(const ExperimentView&) = delete;

  /// A stage begins ("tuning lr", "runs"): of its runs, `ended` are there already.
  virtual void on_stage(const std::string& name, std::int64_t runs,
                        const std::vector<RunResult>& ended) = 0;
  virtual void on_start(const std::string& run) = 0;
  virtual void on_end(const std::string& run, const RunResult& result, double seconds) = 0;
  /// A run that had ended is done again, as its folder was found changed (`what`); it is in `aside`
  /// now.
  virtual void on_damaged(const std::string& run, const std::string& what,
                          const std::filesystem::path& aside) = 0;
  /// `why` it is missing, in words; it goes on the next time.
  virtual void on_missing(const std::string& run, const std::string& why) = 0;
  /// Several times a second.
  virtual void on_tick() = 0;
  virtual void on_stage_end() = 0;
};

/// What conducting an experiment came to.
struct Conducted {
  /// Runs that were killed or could not be written: they go on the next time.
  std::int64_t missing = 0;
  /// Empty where it was stopped, or a run that tunes is missing.
  std::optional<Answer> answer{};
  std::vector<TuningAnswer> tuning{};
};

/// Does all that is left to do of the design in its folder, which has adopted it. Throws Error
/// where the folder has runs with other options, and where no value of what is tuned is good.
[[nodiscard]] Conducted conduct(const Design& design, const ExperimentFolder& folder,
                                DataFacts& facts, const PoolOptions& options, ExperimentView& view);

/// Writes answer.md, answer.csv, runs.csv and answer.json into the folder. Throws OutputError.
void write_answer(const ExperimentFolder& folder, const Design& design, const Conducted& conducted);

}  // namespace rubato
