// What the headers and the README show, in programs that need no libtorch: FragmentsTest compares.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include <rubato/base/machine.hpp>
#include <rubato/loop/eigen.hpp>
#include <rubato/loop/gradient_transform.hpp>
#include <rubato/loop/observers.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/numbers/rule.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/tensorboard.hpp>
#include <rubato/runs/workload.hpp>
#include <rubato/steps/batch_policy.hpp>
#include <rubato/steps/step_source.hpp>
#include <rubato/testing.hpp>

namespace rubato::fragments {

namespace readme {

int main(int argc, char** argv) {
  rubato::use_right_kernels(argv);
  return argc - 1;
}

}  // namespace readme

void dense_network(const DenseDataset<float>& train, const DenseDataset<float>& test,
                   const Trace& trace, const TrainOptions& options) {
  auto network = rubato::multi_layer_perceptron(train, {.hidden = {128, 64}, .test = test});
  rubato::Trainer trainer(std::move(network), trace, options);
}

void step_source(std::unique_ptr<Objective> objective, const TrainOptions& options) {
  // As large as the noise allows, from 32 to 512.
  const auto policy = [](const rubato::SourceProgress& so_far) -> rubato::TraceStep {
    const double noise = so_far.noise_scale.value_or(32);
    return {.batch_size = std::clamp(std::llround(noise / 32), 1LL, 16LL) * 32};
  };
  rubato::Trainer trainer(
      std::move(objective),
      std::make_unique<rubato::FunctionSource>(policy, rubato::FunctionSourceOptions{512, true}),
      options);
}

void tensorboard(Trainer& trainer) {
  trainer.add_observer<rubato::TensorBoard>("logs/first");
}

void tensorboard_with_histograms(Trainer& trainer) {
  trainer.add_observer<rubato::TensorBoard>(
      "logs/first",
      rubato::TensorBoardOptions{.histograms = "*", .hyperparameters = {{"lr", 0.1}}});
}

std::int64_t batch_policy(const TraceStep& offered, const SourceProgress& progress) {
  // Twice the samples from the tenth epoch on.
  const auto doubled = [](rubato::TraceStep step, const rubato::SourceProgress& so_far) {
    if (so_far.epoch.value() >= 10) step.batch_size *= 2;
    return rubato::BatchDecision{.step = step};
  };
  const rubato::FunctionPolicy policy(doubled, {.name = "doubled", .max_batch = 1024});
  return policy.decide(offered, progress).step.batch_size;
}

void run() {
  const rubato::RunConfiguration configuration = rubato::read_configuration("run.toml");
  rubato::Run run(configuration, rubato::dense_workload(configuration),
                  rubato::RunLocation::create("runs/first"));
  const rubato::RunOutcome outcome = run.execute();
  static_cast<void>(outcome);
}

void own_names() {
  rubato::RunConfiguration configuration;
  configuration.extensions.rules.add(
      "log2", [](const rubato::RuleInput& step) { return std::log2(1 + step.scale()); });
  configuration.rule = {"log2", configuration.extensions};
  rubato::Run run(configuration, rubato::dense_workload(configuration),
                  rubato::RunLocation::create("runs/first"));
}

double lambda_rule(const RuleInput& input) {
  rubato::FunctionRule log2(
      "log2", [](const rubato::RuleInput& step) { return 1 + std::log2(step.scale()); });
  return log2.rates(input).learning_rate;
}

void testing(const MakeTrainer& make) {
  EXPECT_EQ(rubato::test::difference_in_bits(make, 7), std::nullopt);
}

void trainer(std::unique_ptr<Objective> objective, const Trace& trace,
             const TrainOptions& options) {
  rubato::Trainer trainer(std::move(objective), trace, options);
  const rubato::TrainResult result = trainer.fit();
  static_cast<void>(result);
}

TrainOptions gradient_transform() {
  TrainOptions options;
  options.gradient_transforms = {
      rubato::function_transform("sign", [](const auto& gradient, rubato::Workers& workers) {
        workers.for_each_range(gradient.values.size(), [&](std::size_t begin, std::size_t end) {
          for (std::size_t i = begin; i < end; ++i) {
            const auto value = gradient.values[i];
            if (value > 0) gradient.values[i] = 1;
            if (value < 0) gradient.values[i] = -1;
          }
        });
      })};
  return options;
}

std::size_t observers(Trainer& trainer) {
  const auto best = trainer.add_observer<rubato::BestWeights>(rubato::Metric::test_loss);
  const auto most_accurate = trainer.add_named_observer<rubato::BestWeights>(
      "most-accurate", rubato::Metric::test_accuracy);
  return best->parameters().size() + most_accurate->parameters().size();
}

}  // namespace rubato::fragments
