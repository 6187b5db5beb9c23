#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <rubato/runs/run_configuration.hpp>

#include "fork.hpp"

namespace rubato {

/// A run that came to nothing, and the question from which of its steps on that was inevitable.
struct DoomRequest {
  std::filesystem::path run{};
  /// configuration_of_run(), with the threads to use.
  RunConfiguration configuration{};
  /// The number of forks that are trained from a step, each with another order of the samples.
  std::int64_t orders = 8;
  /// A training is lost if it ends with a loss above this; empty for TrainingCourse::bound().
  std::optional<double> lost_above{};
  /// The number of steps after which forks end, counted from their beginning or, if they begin
  /// earlier, from TrainingCourse::suspect(); empty if they end where the run would.
  std::optional<std::int64_t> steps{};
};

/// How the loss of a training went. Its loss at some time is that of the last test or, without a
/// test set, the mean of the last ten steps.
class TrainingCourse {
 public:
  void add_step(double loss);
  /// Adds a step that was skipped (StepRecord::skipped): it is counted, and its loss is not.
  void add_skipped_step() { ++steps_; }
  /// Adds a step, which may have been skipped.
  void add(const StepRecord& step) { step.skipped ? add_skipped_step() : add_step(step.loss); }
  void add_test(double loss);

  /// The loss of the first step that was not skipped.
  [[nodiscard]] double beginning() const { return beginning_; }
  /// The lowest test loss or mean of ten steps in a row, so that it exists before the first test.
  [[nodiscard]] double best() const { return best_; }
  /// The number of steps taken when the loss was lowest before it was highest: if the run was lost
  /// by an accident, probably the last step before it. 0 if the loss never exceeded that of the
  /// first step.
  [[nodiscard]] std::int64_t suspect() const { return suspect_; }
  /// NaN if the loss was not finite.
  [[nodiscard]] double end() const;

  /// The loss above which a training is lost. It is lost if it ends with less than half of what it
  /// had learned at best, or if it has never learned anything worth mentioning: half way between
  /// the best loss and that of the beginning, but at most nine tenths of the latter.
  [[nodiscard]] double bound() const;

 private:
  void offer(double loss);

  std::vector<double> losses_;
  std::optional<double> test_;
  std::int64_t steps_ = 0;
  double beginning_ = 0;
  double best_ = 0;
  double worst_ = 0;
  std::int64_t best_step_ = 0;
  std::int64_t suspect_ = 0;
};

/// A share that was counted, with its 95 % interval by Wilson's score method (Wilson 1927), which
/// keeps its level for few trials and for shares near 0 and 1.
struct Share {
  std::int64_t count = 0;
  std::int64_t of = 0;
  double low = 0;
  double high = 1;
};
/// `of` is at least 1.
[[nodiscard]] Share share_of(std::int64_t count, std::int64_t of);

/// A fork that was trained.
struct DoomedFork {
  /// Orders its samples; `rubato train --from RUN@STEP --seed N` repeats it.
  std::uint64_t seed = 0;
  bool diverged = false;
  /// TrainingCourse::end(); empty if it is not finite.
  std::optional<double> loss{};
  bool lost = false;
};

/// The forks from a step of the run.
struct TriedStep {
  /// They begin with the state after so many steps.
  std::int64_t step = 0;
  std::vector<DoomedFork> forks{};

  [[nodiscard]] Share lost() const;
};

/// The forks from the first step at which the run was lost, with something changed.
struct TriedChange {
  /// "half the rate, 0.05"
  std::string name{};
  std::vector<DoomedFork> forks{};

  [[nodiscard]] Share saved() const;
};

/// The facts about the run that are known before anything is trained.
struct DoomFacts {
  /// Its folder.
  std::filesystem::path run{};
  /// The steps that it took, without the one in which it diverged.
  std::int64_t steps = 0;
  bool diverged = false;
  double beginning = 0;
  double best = 0;
  /// Empty if it is not finite.
  std::optional<double> end{};
  double lost_above = 0;
  /// True if the run is lost itself. If it is not, nothing is trained.
  bool lost = false;
  /// The most steps from which forks may have to be trained, the most steps of training that they
  /// and the changes take together, and how long that takes at the run's own speed.
  std::int64_t most_tried = 0;
  std::int64_t most_steps = 0;
  double most_seconds = 0;
};

struct DoomResult {
  DoomFacts facts{};
  /// The number of steps after which all forks were lost for the first time. Equal to the steps of
  /// the run if it was lost only at its end; empty if it was not lost even after its last step.
  std::optional<std::int64_t> inevitable{};
  /// In ascending order of their steps.
  std::vector<TriedStep> tried{};
  /// Empty if the loss was not inevitable before the end of the run.
  std::vector<TriedChange> changes{};
};

/// The parts of a search that whoever wants it provides.
struct DoomParts {
  ReplayParts replay;
  /// Called once, before anything is trained.
  std::function<void(const DoomFacts& facts)> on_begin{};
  /// Called before each fork is trained: what it is, "after step 40" or "after step 41, rule root",
  /// and its number, from 1.
  std::function<void(const std::string& what, std::int64_t number)> on_fork{};
};

/// Finds the first step after which the run is lost whatever the order of the samples, by forks
/// from steps of the run. The search begins at TrainingCourse::suspect(), goes on from there with
/// strides that double, and then bisects; it takes for granted that a run is not saved by going on.
/// Then forks from that step are trained with half the rate, with the rule root, and with the
/// optimizer's memory cleared, if that makes a difference to the run.
///
/// All forks are the same bits for any number of threads, so the result is, too. Writes nothing.
/// Throws Error as state_after() does, and if the run has no steps.
[[nodiscard]] DoomResult doom(const DoomRequest& request, const DoomParts& parts);

}  // namespace rubato
