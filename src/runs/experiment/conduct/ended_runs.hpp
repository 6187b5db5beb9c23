#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include <rubato/runs/run_configuration.hpp>

#include "run_result.hpp"

namespace rubato {

/// The runs of other experiments that have ended, to be found by their options.
class EndedRuns {
 public:
  /// The runs of all experiments in `folder`, or of the experiment that it is.
  explicit EndedRuns(const std::filesystem::path& folder);

  /// Returns the folder of a run whose options, steps and files are those of `run`, but for options
  /// that change neither results nor records. Its metrics are those that it has written. Its data,
  /// kernels and versions are not compared: a run that continues it must say that they are the
  /// same. Returns nothing if there is none, and for a run of which not all can be compared: with a
  /// plug-in, a rule of Python's or `--exact false`, with records for TensorBoard or a timeline,
  /// and for forks.
  [[nodiscard]] std::optional<std::filesystem::path> equal_to(const RunConfiguration& run,
                                                              const Measure& measure) const;

 private:
  struct Ended {
    std::filesystem::path folder;
    RunConfiguration configuration;
  };
  std::multimap<std::string, Ended> runs_;
};

}  // namespace rubato
