// A plug-in that has one of each kind that the example has not.

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

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

// A rule that throws, or worse, in the fourth step.
class Failing final : public Rule {
 public:
  enum class How { error, exception, number, crash, thread };

  explicit Failing(How how) : how_(how) {}
  [[nodiscard]] std::string_view name() const override { return "failing"; }
  [[nodiscard]] Rates rates(const RuleInput& input) override {
    if (++steps_ == 4) fail();
    return scaled(input, 1);
  }
  void visit_state(NumberVisitor& numbers) override { numbers.count(steps_); }

 private:
  void fail() const {
    if (how_ == How::error) throw Error("no licence");
    if (how_ == How::exception) throw std::runtime_error("no licence");
    if (how_ == How::number) throw 42;
    if (how_ == How::crash) std::abort();
    std::thread([] { throw std::runtime_error("no licence"); }).detach();
  }

  How how_;
  std::int64_t steps_ = 0;
};

constexpr std::array<Choice<Failing::How>, 5> kHows{{{Failing::How::error, "error"},
                                                     {Failing::How::exception, "exception"},
                                                     {Failing::How::number, "number"},
                                                     {Failing::How::crash, "crash"},
                                                     {Failing::How::thread, "thread"}}};

OwnMetric failing_metric() {
  return {.name = "failing",
          .mode = MetricMode::min,
          .value = [](Training&, const EpochRecord&) -> std::optional<double> { throw 42; }};
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
  extensions.rules.add("failing", [](Spec& spec) {
    return std::make_unique<Failing>(spec.choice("how", Failing::How::error, kHows));
  });
  extensions.rules.add("unmade", [](Spec& spec) -> std::unique_ptr<Rule> {
    if (spec.flag("number", false)) throw 42;
    throw std::runtime_error("no licence");
  });
  extensions.schedules.add("unmade", [](Spec&) -> std::unique_ptr<LrSchedule> { throw 42; });
  extensions.metrics.add("failing", [](Spec&) { return failing_metric(); });
  extensions.samplers.add("failing", [](Spec&) {
    return Sampler{.name = "failing",
                   .order = [](const EpochDraw& draw) -> std::vector<std::int64_t> {
                     if (draw.epoch.value() > 0) throw std::runtime_error("no order");
                     std::vector<std::int64_t> order(static_cast<std::size_t>(draw.samples));
                     std::iota(order.begin(), order.end(), 0);
                     return order;
                   }};
  });
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
