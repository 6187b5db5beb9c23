#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <rubato/model/model.hpp>
#include <rubato/optim/sgd.hpp>
#include <rubato/plan/plan.hpp>
#include <rubato/plan/shuffle.hpp>
#include <rubato/runtime/workers.hpp>
#include <rubato/scaling/rule.hpp>
#include <rubato/train/dataset.hpp>
#include <rubato/train/records.hpp>

#include "replica_set.hpp"

namespace rubato {

/// What a step engine works with. All of it outlives the engine.
struct StepEngineParts {
  ReplicaSet& replicas;
  const Loss& loss;
  const TensorDataset& dataset;
  Workers& workers;
};

/// What a step is taken with.
struct StepSettings {
  Assignment assignment = Assignment::contiguous;
  /// The batch size of the input is set by the step.
  RuleInput rule_input;
};

struct StepOutcome {
  double loss = 0;
  /// Whether the step was applied: loss and gradient are finite.
  bool applied = true;
  Rates rates;
  StepTiming seconds;
};

/// Takes one step: all substeps on their cores, the sum of their gradients, the rule, the update.
class StepEngine {
 public:
  StepEngine() = default;
  StepEngine(const StepEngine&) = delete;
  StepEngine& operator=(const StepEngine&) = delete;
  virtual ~StepEngine() = default;

  /// Where the loss or the gradient is not finite, the shared state is left as it was.
  [[nodiscard]] virtual StepOutcome run(const StepPlan& step, const EpochSamples& samples,
                                        Rule& rule, const StepSettings& settings) = 0;
  [[nodiscard]] virtual std::int64_t gradient_buffers() const = 0;
};

/// An engine for the type of the model's parameters and steps of at most `max_minibatches`,
/// which the reducer of that name sums.
[[nodiscard]] std::unique_ptr<StepEngine> make_step_engine(const StepEngineParts& parts,
                                                           const SgdOptions& sgd,
                                                           std::int64_t max_minibatches,
                                                           std::string_view reduce);

}  // namespace rubato
