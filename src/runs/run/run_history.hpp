#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/digest.hpp>
#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/records.hpp>
#include <rubato/runs/records.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "computed_by.hpp"

namespace rubato {

/// The steps of a run, as its metrics tell of them.
struct RecordedSteps {
  /// The numbers that a repeated step has again.
  struct Numbers {
    std::int64_t batch_size = 0;
    double learning_rate = 0;
    /// NaN if it was not finite.
    double loss = 0;

    struct Difference {
      std::string_view name{};
      double here = 0;
      double there = 0;
    };
    /// The first number that is another one in `other`: batch, loss, rate. Sums in another order
    /// have other losses, which are compared only if they are `exact`.
    [[nodiscard]] std::optional<Difference> difference_from(const Numbers& other,
                                                            bool exact = true) const;
  };
  std::int64_t count = 0;
  /// The numbers of each step, by the number of steps up to it.
  std::map<std::int64_t, Numbers> numbers{};
  /// The digests of steps that have one.
  std::map<std::int64_t, Digest> digests{};
};

/// Reads the metrics in the folder of a run. Throws Error.
[[nodiscard]] RecordedSteps recorded_steps(const std::filesystem::path& run);

/// Checks whether the metrics in the folder of a run that has ended are those that it wrote, by the
/// steps and the SHA-256 in its summary. A second thread computes the hash while the lines are
/// read.
class MetricsCheck {
 public:
  /// Begins. An empty `sha256` stands for no summary, or one without a hash.
  MetricsCheck(const std::filesystem::path& run, std::int64_t ended_after, std::string sha256);

  /// Says that they are not, if the file has `count` steps. Empty if they are, if the summary has
  /// no hash, and if the run has continued since. Called once; throws Error if the file cannot be
  /// read.
  [[nodiscard]] std::string changed(std::int64_t count);

 private:
  std::filesystem::path metrics_;
  std::int64_t ended_after_ = 0;
  std::string sha256_;
  std::future<std::string> found_;
};

/// A repeated step is another one, or a state is not that of its step.
class StepDiffers : public Error {
 public:
  using Error::Error;
};

/// The steps of a run that were taken with the options in one folder: its own or, before a fork,
/// that of the run it comes from.
struct RunSegment {
  std::filesystem::path run{};
  RunConfiguration configuration{};
  /// They follow the first `begin` steps and end where the next segment begins. A fork that was
  /// forked at its first step has none.
  std::int64_t begin = 0;
};

/// A file with the state of a run after a step.
struct RunCheckpoint {
  std::filesystem::path file{};
  std::int64_t step = 0;
  /// The position of the segment in whose folder it is.
  std::size_t segment = 0;
  /// True for the state with which a fork began. It may not be that of the step, because an
  /// optimizer may begin anew.
  bool begins_fork = false;
};

/// Knows the steps that a run has taken: the options and the folder that each belongs
/// to, the checkpoints, and the records with which repeated steps are compared. A fork has the
/// steps before it from another run, which may be a fork itself. Reads records when they are first
/// asked for, which may throw Error, and once; copies that are made afterwards share them.
class RunHistory {
 public:
  static constexpr auto kEver = std::numeric_limits<std::int64_t>::max();

  /// `own` is the configuration of the run in the folder `run`. Those of the runs that it comes
  /// from are read with its names, and get its threads and kernels.
  RunHistory(const std::filesystem::path& run, RunConfiguration own);
  /// The history of the run in a folder, to_repeat() with `around`, with whose names its
  /// configuration is read. Throws Error if there is no run.
  [[nodiscard]] static RunHistory of(const std::filesystem::path& run,
                                     const RunConfiguration& around);
  /// The history of the run in a folder, with configurations that have nothing but `from`, for
  /// those who show which steps are where: loads nothing that a configuration names. Throws Error
  /// if one of them cannot be read.
  [[nodiscard]] static RunHistory outline(const std::filesystem::path& run);

  [[nodiscard]] const std::filesystem::path& run() const { return segments_.back().run; }
  /// In the order of their steps, the run's own last. Those of a folder that is gone, and those
  /// before them, are missing.
  [[nodiscard]] const std::vector<RunSegment>& segments() const { return segments_; }
  /// The position of the segment of a step, counted from 1; that of the first one for step 0.
  /// Throws Error as require_beginning() does if it is missing.
  [[nodiscard]] std::size_t of_step(std::int64_t step) const;
  /// The number of steps at which a segment ends, but at most `last`.
  [[nodiscard]] std::int64_t end_of(std::size_t segment, std::int64_t last = kEver) const;
  /// The number of steps that both have from the same runs.
  [[nodiscard]] std::int64_t shared_with(const RunHistory& other) const;
  /// The same steps with the threads and kernels of `around`, and without checkpoints and a
  /// timeline.
  [[nodiscard]] RunHistory to_repeat(const RunConfiguration& around) const;
  /// The same steps with options that are changed in each segment.
  [[nodiscard]] RunHistory with(const std::function<void(RunConfiguration&)>& change) const;
  /// The checkpoints of its steps, in the folders in which the segments have them, newest first.
  [[nodiscard]] std::vector<RunCheckpoint> checkpoints() const;
  /// Returns what computed a step, counted from 1, as far as the folder of its segment tells; empty
  /// if that is gone.
  [[nodiscard]] ComputedBy computed_by(std::int64_t step) const;
  /// The records in the run's folder, which has those of all of its steps.
  [[nodiscard]] const RecordedSteps& steps() const { return records().steps; }
  /// Empty if the run has not ended.
  [[nodiscard]] const std::optional<RunSummary>& summary() const { return records().summary; }

  /// Throws Error, whose text begins with `option`, unless the run has so many steps.
  void require_step(std::int64_t step, std::string_view option = "") const;
  /// Names the run that is gone, and the steps that do not need it; empty if the history begins
  /// with the first step.
  [[nodiscard]] std::string missing_beginning() const;
  /// Throws Error if missing_beginning() says something.
  void require_beginning() const;
  /// Throws Error if the run has continued in another folder, or changed_metrics() says something.
  void require_unchanged() const;
  /// rubato::changed_metrics() of the run; empty if it has not ended, too.
  [[nodiscard]] const std::string& changed_metrics() const { return records().changed; }
  /// Throws StepDiffers if the state of a checkpoint has another digest than its step; Error if it
  /// is in the folder of an origin whose step is another one: another run may be in its place.
  void require_state_of(const RunCheckpoint& checkpoint, const State& state) const;
  /// Says how a step that was repeated `here` differs from its records, and whether something else
  /// computed it then; empty if it does not differ. Without `exact` the loss and the rate may.
  [[nodiscard]] std::string difference_of(const StepRecord& step, bool exact,
                                          const ComputedBy& here) const;
  /// Throws StepDiffers if the run ended with so many steps and other weights than these, by the
  /// SHA-256 in its summary. If sums are not exact, repeated steps may have others.
  void require_weights(std::int64_t step, std::span<const NamedArray> parameters,
                       const ComputedBy& here) const;

 private:
  struct Records {
    RecordedSteps steps{};
    std::optional<RunSummary> summary{};
    std::string changed{};
  };
  using Reader = std::function<RunConfiguration(const std::filesystem::path& run)>;
  // Reads the configurations of the runs that the run comes from.
  RunHistory(const std::filesystem::path& run, RunConfiguration own, const Reader& read);
  [[nodiscard]] const Records& records() const;
  // Says what may be the reason if a step differs that is repeated here.
  [[nodiscard]] std::string reason_of(std::int64_t step, const ComputedBy& here) const;

  std::vector<RunSegment> segments_;
  mutable std::shared_ptr<const Records> records_;
};

/// The configuration of the run in a folder, to begin a fork with.
[[nodiscard]] RunConfiguration configuration_of_run(const std::filesystem::path& run,
                                                    const RunConfiguration& around);

}  // namespace rubato
