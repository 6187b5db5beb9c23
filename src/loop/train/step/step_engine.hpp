#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/objective.hpp>
#include <rubato/loop/records.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/loop/workers.hpp>
#include <rubato/numbers/rule.hpp>
#include <rubato/steps/plan.hpp>
#include <rubato/steps/random.hpp>

namespace rubato {

class QuietStretches;

/// What a step engine works with. All of it outlives the engine.
struct StepEngineParts {
  Objective& objective;
  Workers& workers;
  Rule& rule;
};

/// The steps that are to come.
struct StepRange {
  /// Minibatches of the smallest that is known to come, and of the largest that can.
  std::int64_t least = 1;
  std::int64_t most = 1;
  /// How cores lie on several hosts (TraceStep::host_cores), each way that is known to come.
  std::set<std::vector<std::int64_t>> host_cores{};
};

/// What a step is taken with.
struct StepSettings {
  /// What no step changes is set by the engine, what the step says by the step.
  EpochIndex epoch{};
  double base_learning_rate = 0;
  /// Called before the step changes what cannot be taken back; until then an exception leaves all
  /// as it was before the step.
  std::function<void()> before_change{};
  /// One of them is open while the minibatches are computed; may be null.
  QuietStretches* quiet = nullptr;
  /// Sees the mean gradients before the update; empty where nobody does.
  std::function<void(std::span<const NamedArray> gradients)> inspect{};
  /// Hears of an attempt in which cores died, before it is redone on the cores left.
  std::function<void(const StepPlan& attempt, std::span<const FaultRecord> faults,
                     std::int64_t cores_left)>
      on_fault{};
  /// Is told which of the parts that users plug in is called next ("rule"), and with empty text
  /// that it has returned.
  std::function<void(std::string_view part)> enter{};
};

struct StepOutcome {
  /// Not a number where the weight is 0.
  double loss = 0;
  /// The sum of the minibatches' weights, where they have any.
  std::optional<double> weight{};
  /// Whether the step was applied: loss and gradient are finite.
  bool applied = true;
  /// It was not, because of an overflow in half precision or a weight of 0, and training goes on.
  bool skipped = false;
  /// What the loss was multiplied by; in half precision.
  std::optional<double> loss_scale{};
  /// In ascending order; where they are logged.
  std::span<const MinibatchRecord> minibatches{};
  /// Those that did it, in the end.
  std::int64_t cores = 1;
  double learning_rate = 0;
  double gain = 1;
  /// Of the mean gradient, before clipping; where it was measured.
  std::optional<double> gradient_norm{};
  /// Of each parameter group; where they were measured.
  std::span<const GradientNorms> groups{};
  /// Whether they are of this step and the one before, of one minibatch each
  /// (RuleInput::from_pair).
  bool from_pair = false;
  StepTiming seconds{};
};

/// Takes one step: all substeps on their cores, the sum of their gradients, the rule, the update.
class StepEngine {
 public:
  StepEngine() = default;
  StepEngine(const StepEngine&) = delete;
  StepEngine& operator=(const StepEngine&) = delete;
  virtual ~StepEngine() = default;

  /// Where the loss or the gradient is not finite, all is left as it was.
  [[nodiscard]] virtual StepOutcome run(const StepPlan& step, const SampleOrder& samples,
                                        const StepSettings& settings) = 0;
  [[nodiscard]] virtual std::int64_t gradient_buffers() const = 0;
  /// That a core computes in one pass at most.
  [[nodiscard]] virtual std::int64_t minibatches_at_once() const = 0;
  /// Returns whether exchange_shown() changes the parameters.
  [[nodiscard]] virtual bool shows_others() = 0;
  /// Puts what is to be tested and saved in the place of the parameters (FlatOptimizer::shown());
  /// a second call brings them back, which has to come before the next step.
  virtual void exchange_shown() = 0;
  /// The optimizer's, and what is measured from step to step.
  virtual void visit_state(StateVisitor& state) = 0;
};

/// An engine for the type of the objective's parameters, which checked_objective() has let pass,
/// and such steps. Throws Error for options out of their range, and for a
/// rule that the optimizer cannot follow.
[[nodiscard]] std::unique_ptr<StepEngine> make_step_engine(const StepEngineParts& parts,
                                                           const TrainOptions& options,
                                                           const StepRange& steps);

}  // namespace rubato
