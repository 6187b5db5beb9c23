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
  /// In which it begins.
  EpochIndex epoch;
  StepPlan plan;
  /// With it; where the source has a clock.
  std::optional<ClockTime> time{};
  /// What the source goes by (StepSource::decision_inputs()).
  std::vector<NamedNumber> decision_inputs{};
};

/// The walk through the epochs of a training, step by step: what an epoch is, which step comes
/// next, what of the epoch is left, and how far training has come. Training, simulation and plans
/// all go by it, each in the same way:
///
///     while (walk.epoch().value() < epochs && !walk.has_ended()) {
///       while (const NextStep* step = walk.next()) { ...; walk.take(); }
///       if (walk.epoch_is_full()) walk.end_epoch();
///     }
///
/// The source is asked when somebody wants to know, once for each step and each epoch that it might
/// be in. What throws there is thrown again, as often as somebody asks. A copy walks on by itself,
/// but tells the same source of the steps that it takes.
class Walk {
 public:
  /// The source has to outlive it. Throws Error as StepPlanner does.
  Walk(StepSource& source, const PlanOptions& options, const Budget& budget = {});

  /// The next step, good until it is taken; null where none comes in this epoch. Throws Error for
  /// one that cannot be taken.
  [[nodiscard]] const NextStep* next();
  /// Whether all samples of the epoch have been taken; the source is not asked.
  [[nodiscard]] bool has_all_samples() const {
    return epoch_samples_ >= planner_.samples_per_epoch();
  }
  /// Whether the epoch has room for no further step.
  [[nodiscard]] bool epoch_is_full();
  /// Whether the source has no further step although the epoch has room for one.
  [[nodiscard]] bool has_ended();
  /// Why it has none.
  [[nodiscard]] SourceEnd end() const { return source_->end(progress()); }
  /// What of the budget is reached with next(), where that has so much gain; empty where there is
  /// some left.
  [[nodiscard]] std::string reached_with(double gain);
  /// Whether the budget is reached with the steps that have been taken.
  [[nodiscard]] bool budget_is_reached() const {
    return !reached(budget_, {.iterations = iterations_, .samples = samples_, .time = time_})
                .empty();
  }

  /// Takes next(), which there has to be. What only training knows: its gain, and the noise scale
  /// with it.
  void take(std::optional<double> gain = {}, std::optional<double> noise_scale = {});
  /// Goes on to the next epoch: what its last step took beyond it is in that one, and what is left
  /// of it is left. One that is not whole does not count.
  void end_epoch(bool whole = true);
  /// Makes the place the begin of its epoch's walk, of which a step that began before it has taken
  /// the samples.
  void go_to(const StepPlace& place);

  /// That has begun, or comes next: as many are whole.
  [[nodiscard]] EpochIndex epoch() const { return epoch_; }
  [[nodiscard]] StepIndex step() const { return step_; }
  /// The epoch's.
  [[nodiscard]] StepIndex first_step() const { return first_step_; }
  /// Taken in the epoch.
  [[nodiscard]] std::int64_t epoch_steps() const { return step_.value() - first_step_.value(); }
  [[nodiscard]] std::int64_t epoch_samples() const {
    return std::min(epoch_samples_, planner_.samples_per_epoch());
  }
  /// Of epoch_samples(), those of a step that began before the epoch.
  [[nodiscard]] std::int64_t samples_before() const { return samples_before_; }
  /// The part of the epoch that has been taken; empty where that is all of it. `whole_steps` are
  /// those of a whole one, where that is known.
  [[nodiscard]] std::optional<EpochPart> part(std::optional<std::int64_t> whole_steps);
  /// In all.
  [[nodiscard]] std::int64_t samples() const { return samples_; }
  [[nodiscard]] double iterations() const { return iterations_; }
  /// With the last step, where the source has a clock.
  [[nodiscard]] const std::optional<ClockTime>& time() const { return time_; }
  /// What the source is told of all that.
  [[nodiscard]] SourceProgress progress() const;

  [[nodiscard]] const StepPlanner& planner() const { return planner_; }
  /// Minibatches of the largest step that there can be, at least 1.
  [[nodiscard]] std::int64_t max_minibatches() const;

  /// Where it is, and what its source has to remember. `in_epoch`: whether the epoch has begun,
  /// which epochs of no step yet may have or not. `noise_scale` is that of take(). Throws Error
  /// where the state is damaged, or of other steps.
  void visit_state(StateVisitor& state, bool& in_epoch, std::optional<double> noise_scale);

 private:
  // What comes after the steps that have been taken.
  struct Ahead {
    // Nothing does.
    bool ended = false;
    TraceStep asked{};
    // Empty where the epoch has no room for it.
    std::optional<NextStep> step{};
  };

  [[nodiscard]] const Ahead& ahead();
  void visit_place(StateVisitor& state, bool& in_epoch);
  // Of the next step: with Remainder::carry behind the epoch, where that has all its samples.
  [[nodiscard]] StepPlace place() const;

  StepSource* source_;
  StepPlanner planner_;
  Budget budget_;
  std::int64_t max_batch_;

  EpochIndex epoch_;
  StepIndex step_;
  StepIndex first_step_;
  std::int64_t samples_before_ = 0;
  // Since the epoch began: with Remainder::carry those that the last step took beyond it, too.
  std::int64_t epoch_samples_ = 0;
  std::int64_t samples_ = 0;
  double iterations_ = 0;
  std::optional<ClockTime> time_;
  // Of the last step.
  std::int64_t last_batch_ = 0;
  std::optional<double> last_gain_;
  std::optional<double> noise_scale_;
  // What the source has said to all this; empty while nobody has asked.
  std::optional<Ahead> ahead_;
};

}  // namespace rubato
