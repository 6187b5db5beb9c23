#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <rubato/runs/run_configuration.hpp>

namespace rubato {

/// The steps of a run that were taken with the options in one folder: its own or, before a fork,
/// that of the run it comes from.
struct RunSegment {
  std::filesystem::path run{};
  RunConfiguration configuration{};
  /// They follow the first `begin` steps and end where the next segment begins. A fork that was
  /// forked at its first step has none.
  std::int64_t begin = 0;
};

/// The options and the folder that each step of a run belongs to: a fork has the steps before it
/// from another run, which may be a fork itself.
class RunHistory {
 public:
  /// `own` is the configuration of the run in the folder `run`. Those of the runs that it comes
  /// from are read with its names, and get its threads and kernels.
  RunHistory(const std::filesystem::path& run, RunConfiguration own);

  /// In the order of their steps, the run's own last. Those of a folder that is gone, and those
  /// before them, are missing.
  [[nodiscard]] const std::vector<RunSegment>& segments() const { return segments_; }
  /// The position of the segment of a step, counted from 1; that of the first one for step 0.
  /// Throws Error as require_beginning() does if it is missing.
  [[nodiscard]] std::size_t of_step(std::int64_t step) const;
  /// The number of steps at which a segment ends, but at most `last`.
  [[nodiscard]] std::int64_t end_of(std::size_t segment, std::int64_t last) const;
  /// The same steps with options that are changed in each segment.
  [[nodiscard]] RunHistory with(const std::function<void(RunConfiguration&)>& change) const;
  /// Throws Error, naming the run that is gone, if the history does not begin with the first step.
  void require_beginning() const;

 private:
  std::vector<RunSegment> segments_;
};

/// The configuration of the run in a folder, to begin a fork with.
[[nodiscard]] RunConfiguration configuration_of_run(const std::filesystem::path& run,
                                                    const RunConfiguration& around);

}  // namespace rubato
