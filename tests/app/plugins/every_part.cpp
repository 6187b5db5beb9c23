// A plug-in that has one of each kind that the example has not.

#include <cstdint>
#include <memory>

#include <rubato/runs/run_configuration.hpp>

#include "train/plug_points.hpp"

namespace rubato::test {
namespace {

// Plain gradient descent.
class Descent final : public FlatOptimizer<float> {
 public:
  void step(const Update<float>& update, Workers& workers) override {
    const double rate = update.rates.learning_rate * static_cast<double>(update.gradient_factor);
    workers.for_each_range(update.parameters.size(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        update.parameters[i] -= static_cast<float>(rate * update.gradient_sum[i]);
      }
    });
  }
  void visit_state(StateVisitor&) override {}
};

// Twice the samples in each epoch.
BatchDecision doubled(TraceStep step, const SourceProgress& so_far) {
  for (std::int64_t i = 0; i < so_far.epoch.value(); ++i) step.batch_size *= 2;
  return {.step = step};
}

OwnMetric steps_of_epoch() {
  return {.name = "steps",
          .mode = MetricMode::min,
          .value = [](Training&, const EpochRecord& epoch) -> std::optional<double> {
            return static_cast<double>(epoch.steps);
          }};
}

}  // namespace
}  // namespace rubato::test

RUBATO_PLUGIN(extensions) {
  using namespace rubato;
  using namespace rubato::test;
  extensions.schedules.add("inverse-time", [](Spec&) { return std::make_unique<InverseTime>(); });
  extensions.optimizers.add("descent", [](Spec&) {
    return OwnOptimizer{
        .of_float = [](const OptimizerParts&) { return std::make_unique<Descent>(); }};
  });
  extensions.transforms.add("largest", [](Spec& spec) {
    return largest_only(static_cast<std::size_t>(spec.whole("kept", 50, 1, 1'000'000)));
  });
  extensions.reducers.add("pairwise", [](Spec&) { return pairwise(); });
  extensions.metrics.add("steps", [](Spec&) { return steps_of_epoch(); });
  extensions.batch_policies.add("doubled", [](Spec& spec, const BatchPolicySetting&) {
    return std::make_unique<FunctionPolicy>(
        doubled, FunctionPolicyOptions{.name = "doubled",
                                       .max_batch = spec.whole("max", 1024, 1, 1'000'000)});
  });
}
