#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>

#include <rubato/runs/run_configuration.hpp>

#include "run_result.hpp"
#include "runs/config/values/model_choice.hpp"
#include "runs/experiment/design/runs.hpp"

namespace rubato {

/// Facts about the data of an experiment's runs, loaded once for each data set.
class DataFacts {
 public:
  /// The measure of a run's results. Throws Error if its data cannot be read.
  [[nodiscard]] const Measure& measure_of(const RunConfiguration& configuration);
  /// Checks before the first run begins that all runs can be done: that their data can be read,
  /// that their traces are valid and long enough, and that either all or none of their models have
  /// an accuracy. Throws Error, naming the run.
  void require_runnable(std::span<const PlannedRun> runs);

 private:
  struct Facts {
    Measure measure;
    /// Size of the training set.
    std::int64_t samples = 0;
    DataShape shape{};
  };
  const Facts& facts_of(const RunConfiguration& configuration);
  void require_steps(const RunConfiguration& configuration);

  std::map<std::string, Facts> facts_;
  // Configurations whose steps have been checked.
  std::set<std::string> checked_;
};

}  // namespace rubato
