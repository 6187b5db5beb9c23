// A policy of your own decides the batch: it is a function of what a trace offers and of the
// progress of training. This one doubles the batch as long as the noise of its gradient exceeds it.
#include <cmath>
#include <cstdio>
#include <memory>

#include <rubato/loop/objective.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/steps/batch_policy.hpp>

namespace {

// Returns the mean of half the squared distances of some numbers, all between -1 and 1, from p.
double distance(std::span<const double> p, std::span<const std::int64_t> samples,
                std::span<double> gradient) {
  double value = 0;
  for (const std::int64_t sample : samples) {
    const double error = p[0] - std::sin(static_cast<double>(sample));
    value += error * error / 2 / static_cast<double>(samples.size());
    gradient[0] += error / static_cast<double>(samples.size());
  }
  return value;
}

rubato::BatchDecision doubled_in_noise(const rubato::TraceStep& offered,
                                       const rubato::SourceProgress& so_far) {
  rubato::TraceStep step = offered;
  const double noise = so_far.noise_scale.value_or(0);
  while (step.batch_size <= 512 && noise > static_cast<double>(step.batch_size)) {
    step.batch_size *= 2;
  }
  return {.step = step, .inputs = {{"noise", noise}}};
}

}  // namespace

int main() {
  auto policy = std::make_unique<rubato::FunctionPolicy>(
      doubled_in_noise, rubato::FunctionPolicyOptions{
                            .name = "doubled", .max_batch = 1024, .needs_noise_scale = true});
  auto offered = std::make_unique<rubato::TraceSource>(rubato::Trace::constant(64));
  rubato::TrainOptions options{.epochs = 4, .minibatch_size = 16, .learning_rate = 0.05};
  rubato::Trainer trainer(
      rubato::function_objective<double>(
          {.initial = {3}, .samples = 8192, .value_and_gradient = distance}),
      std::make_unique<rubato::PolicySource>(std::move(offered), std::move(policy)), options);

  // Every decision is in the record of its step, and in metrics.jsonl of a run.
  class Decisions final : public rubato::Observer {
    void on_step(rubato::Training& /*training*/, const rubato::StepRecord& step) override {
      if (step.plan.index.value() % 32 != 0) return;
      std::printf("step %3lld: noise %6.0f, batch %lld\n",
                  static_cast<long long>(step.plan.index.value()), step.decision_inputs[0].value,
                  static_cast<long long>(step.plan.batch_size));
    }
  };
  trainer.add_observer<Decisions>();
  std::printf("%lld steps\n", static_cast<long long>(trainer.fit().steps));
}
