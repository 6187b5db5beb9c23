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

/// What has to be known of the data of an experiment's runs.
class DataFacts {
 public:
  /// How a run is measured. Throws Error where its data cannot be read.
  [[nodiscard]] const Measure& measure_of(const RunConfiguration& configuration);
  /// What can be wrong with the runs before they begin: data that cannot be read, a trace that is
  /// none or ends too early, models some of which have an accuracy and some of which have none.
  /// Throws Error, naming the run.
  void require_runnable(std::span<const PlannedRun> runs);

 private:
  struct Facts {
    Measure measure;
    /// In the training set.
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
