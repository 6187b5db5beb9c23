#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/objective.hpp>
#include <rubato/loop/records.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/loop/workers.hpp>
#include <rubato/numbers/lr_schedule.hpp>
#include <rubato/numbers/rule.hpp>
#include <rubato/steps/plan.hpp>
#include <rubato/steps/random.hpp>

namespace rubato {

class QuietStretches;

/// The parts that a step engine works with. All of them must outlive the engine.
struct StepEngineParts {
  Objective& objective;
  Workers& workers;
  Rule& rule;
  const LrSchedule& schedule;
};

/// Bounds of the steps to come, as far as they are known.
struct StepRange {
  /// The minibatches of the smallest step known to come, and of the largest possible one.
  std::int64_t least = 1;
  std::int64_t most = 1;
  /// The distributions of cores over several hosts (TraceStep::host_cores) that are known to come.
  std::set<std::vector<std::int64_t>> host_cores{};
};

/// The settings of a single step.
struct StepSettings {
  EpochIndex epoch{};
  double base_learning_rate = 0;
  /// The momentum and beta1 of the step, as far as the optimizer has them (LrSchedule::momentum());
  /// empty if they are those of its options.
  std::optional<double> momentum{};
  /// True if the step has a digest (StepRecord::digest).
  bool digest = false;
  /// Called before the step changes something that cannot be undone; until then an exception leaves
  /// everything as it was before the step.
  std::function<void()> before_change{};
  /// Opened while the minibatches are computed; may be null.
  QuietStretches* quiet = nullptr;
  /// Receives the mean gradients before the update; may be empty.
  std::function<void(std::span<const NamedArray> gradients)> inspect{};
  /// Called after an attempt in which cores died, before the step is redone on the cores left.
  std::function<void(const StepPlan& attempt, std::span<const FaultRecord> faults,
                     std::int64_t cores_left)>
      on_fault{};
  /// Called with the name of each of the user's parts before it runs ("rule"), and with empty text
  /// when it has returned.
  std::function<void(std::string_view part)> enter{};
};

struct StepOutcome {
  /// The record as far as the engine knows it: without iterations, noise, time and inputs of a
  /// decision. Its plan has the number of cores that finally computed the step.
  StepRecord record{};
  /// The norms of each parameter group, if they were measured.
  std::span<const GradientNorms> groups{};
  /// True if they compare this step with the one before, of one minibatch each
  /// (RuleInput::from_pair).
  bool from_pair = false;
};

/// The name of the weights of the model: the parameters, or the optimizer's choice
/// (FlatOptimizer::shown()). Others have the names of OtherWeightsInfo.
inline constexpr std::string_view kModelWeights{};

/// Takes one step: all substeps on their cores, the sum of their gradients, the rule, the update.
class StepEngine {
 public:
  StepEngine() = default;
  StepEngine(const StepEngine&) = delete;
  StepEngine& operator=(const StepEngine&) = delete;
  virtual ~StepEngine() = default;

  /// Takes the step. If the loss or the gradient is not finite, everything stays as it was.
  [[nodiscard]] virtual StepOutcome run(const StepPlan& step, const SampleOrder& samples,
                                        const StepSettings& settings) = 0;
  [[nodiscard]] virtual std::int64_t gradient_buffers() const = 0;
  /// The largest number of minibatches that a core computes in one pass.
  [[nodiscard]] virtual std::int64_t minibatches_at_once() const = 0;
  /// Returns whether exchange_shown() changes the parameters, for any weights.
  [[nodiscard]] virtual bool shows_others() = 0;
  /// Exchanges the parameters with the weights of that name, which must exist, if they are others;
  /// a second call, which is required before the next step and before any other weights are shown,
  /// brings them back.
  virtual void exchange_shown(std::string_view weights) = 0;
  /// Visits the optimizer's state, unless it begins anew, and what is measured from step to step.
  virtual void visit_state(StateVisitor& state, bool new_optimizer) = 0;
};

/// Makes an engine for such steps, with the type of the objective's parameters, which
/// checked_objective() has accepted. Throws Error for options out of range, and for a rule that the
/// optimizer cannot follow.
[[nodiscard]] std::unique_ptr<StepEngine> make_step_engine(const StepEngineParts& parts,
                                                           const TrainOptions& options,
                                                           const StepRange& steps);

}  // namespace rubato
