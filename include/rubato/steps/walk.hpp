#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <rubato/base/index.hpp>
#include <rubato/base/state.hpp>
#include <rubato/steps/step_plan.hpp>
#include <rubato/steps/step_source.hpp>

namespace rubato {

/// A step that has not been taken yet.
struct NextStep {
  /// The epoch in which the step begins.
  EpochIndex epoch;
  StepPlan plan;
  /// The time after the step, if the source has a clock.
  std::optional<ClockTime> time{};
  /// The numbers behind the source's decision (StepSource::decision_inputs()).
  std::vector<NamedNumber> decision_inputs{};
};

/// Walks through the epochs of a training, step by step: it determines the extent of an epoch, the
/// next step, the rest of the epoch, and the progress of training. Training, simulation and plans
/// all use it in the same way:
///
///     while (walk.epoch().value() < epochs && !walk.has_ended()) {
///       while (const NextStep* step = walk.next()) { ...; walk.take(); }
///       if (walk.epoch_is_full()) walk.end_epoch();
///     }
///
/// The source is only asked when a caller needs to know, once for each step and each epoch that the
/// step might be in. Errors thrown by the source are thrown again on every later call. A copy walks
/// independently, but reports the steps that it takes to the same source.
class Walk {
 public:
  /// The source must outlive the walk. Throws Error as StepPlanner does.
  Walk(StepSource& source, const PlanOptions& options, const Budget& budget = {});

  /// The next step, valid until it is taken; null if none follows in this epoch. Throws Error for a
  /// step that cannot be taken.
  [[nodiscard]] const NextStep* next();
  /// True if all samples of the epoch have been taken; does not ask the source.
  [[nodiscard]] bool has_all_samples() const {
    return epoch_samples_ >= planner_.samples_per_epoch();
  }
  /// True if the epoch has no room for a further step.
  [[nodiscard]] bool epoch_is_full();
  /// True if the source has no further step although the epoch has room for one.
  [[nodiscard]] bool has_ended();
  /// The reason why the source has no further step.
  [[nodiscard]] SourceEnd end() const { return source_->end(progress()); }
  /// The limit of the budget that next() would reach if it had the gain `gain`; empty if none.
  [[nodiscard]] std::string reached_with(double gain);
  /// True if the steps taken so far have reached the budget.
  [[nodiscard]] bool budget_is_reached() const { return !reached_limit().empty(); }
  /// Names that limit; empty if none is reached.
  [[nodiscard]] std::string reached_limit() const {
    return rubato::reached(budget_,
                           {.iterations = iterations_, .samples = samples_, .time = time_});
  }

  /// Takes next(), which must exist. The arguments are known only in training: the step's gain, and
  /// the noise scale after it.
  void take(std::optional<double> gain = {}, std::optional<double> noise_scale = {});
  /// Moves on to the next epoch. Samples that the last step took beyond this epoch belong to the
  /// next; samples left over are dropped. An epoch that is not `whole` is not counted.
  void end_epoch(bool whole = true);
  /// Starts at `place`; its samples belong to a step that began before the epoch.
  void go_to(const StepPlace& place);

  /// The current or next epoch, which equals the number of complete ones.
  [[nodiscard]] EpochIndex epoch() const { return epoch_; }
  [[nodiscard]] StepIndex step() const { return step_; }
  /// The first step of the epoch.
  [[nodiscard]] StepIndex first_step() const { return first_step_; }
  /// Steps taken in the epoch.
  [[nodiscard]] std::int64_t epoch_steps() const { return step_.value() - first_step_.value(); }
  [[nodiscard]] std::int64_t epoch_samples() const {
    return std::min(epoch_samples_, planner_.samples_per_epoch());
  }
  /// The part of epoch_samples() taken by a step that began before the epoch.
  [[nodiscard]] std::int64_t samples_before() const { return samples_before_; }
  /// The part of the epoch that has been taken; empty if that is all of it. `whole_steps` are the
  /// steps of the complete epoch, if known.
  [[nodiscard]] std::optional<EpochPart> part(std::optional<std::int64_t> whole_steps);
  /// All samples so far.
  [[nodiscard]] std::int64_t samples() const { return samples_; }
  [[nodiscard]] double iterations() const { return iterations_; }
  /// Time after the last step, if the source has a clock.
  [[nodiscard]] const std::optional<ClockTime>& time() const { return time_; }
  /// The progress that the source is asked with.
  [[nodiscard]] SourceProgress progress() const;

  [[nodiscard]] const StepPlanner& planner() const { return planner_; }
  /// Minibatches of the largest possible step, at least 1.
  [[nodiscard]] std::int64_t max_minibatches() const;

  /// Visits the position and the source's state. `in_epoch` says if the epoch has begun, which
  /// cannot be derived for an epoch without steps so far. `noise_scale` is that of take(). Throws
  /// Error if the state is damaged, or of other steps.
  void visit_state(StateVisitor& state, bool& in_epoch, std::optional<double> noise_scale);

 private:
  // The source's answer after the steps that have been taken.
  struct Ahead {
    // True if there is no further step.
    bool ended = false;
    TraceStep asked{};
    // Empty if the epoch has no room for it.
    std::optional<NextStep> step{};
  };

  [[nodiscard]] const Ahead& ahead();
  void visit_place(StateVisitor& state, bool& in_epoch);
  // SourceProgress::all_samples.
  [[nodiscard]] std::int64_t all_samples() const;
  // The place of the next step; with Remainder::carry it is in the next epoch once this one has all
  // its samples.
  [[nodiscard]] StepPlace place() const;

  StepSource* source_;
  StepPlanner planner_;
  Budget budget_;
  std::int64_t max_batch_;

  EpochIndex epoch_;
  StepIndex step_;
  StepIndex first_step_;
  std::int64_t samples_before_ = 0;
  // Samples since the epoch began; with Remainder::carry including those that the last step took
  // beyond it.
  std::int64_t epoch_samples_ = 0;
  std::int64_t samples_ = 0;
  double iterations_ = 0;
  std::optional<ClockTime> time_;
  // Batch size and gain of the last step.
  std::int64_t last_batch_ = 0;
  std::optional<double> last_gain_;
  std::optional<double> noise_scale_;
  // The source's answer; empty while nobody has asked.
  std::optional<Ahead> ahead_;
};

}  // namespace rubato
