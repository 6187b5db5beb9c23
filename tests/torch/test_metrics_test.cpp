// What is measured on a test set besides the loss and the accuracy.

#include <cmath>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/linear.h>

#include <rubato/libtorch/module.hpp>
#include <rubato/libtorch/trainer.hpp>

namespace rubato {
namespace {

// One output for each sample, or three.
struct Line : torch::nn::Module {
  torch::nn::Linear line;
  explicit Line(std::int64_t outputs)
      : line(register_module("line", torch::nn::Linear(2, outputs))) {}
  at::Tensor forward(const at::Tensor& x) { return line(x); }
};

constexpr std::int64_t kSamples = 700;

TEST(TestMetrics, HaveTheMeanSquaredErrorOfRealTargets) {
  at::manual_seed(1);
  const TensorDataset data{.inputs = at::randn({kSamples, 2}), .targets = at::randn({kSamples, 1})};
  // A loss that is another, and targets of another shape than the outputs.
  const Loss absolute = [](const at::Tensor& output, const at::Tensor& target) {
    return at::l1_loss(output.view(-1), target.view(-1));
  };
  for (const bool flat : {false, true}) {
    TensorDataset of{.inputs = data.inputs, .targets = flat ? data.targets.view(-1) : data.targets};
    TorchTrainer trainer(model_factory<Line>(1), absolute, of, Trace::constant(32),
                         {.minibatch_size = 16, .mse = true, .perplexity = true, .threads = 2});
    const Evaluation evaluation = trainer.evaluate(of);
    const auto& parameters = trainer.parameters();
    const at::Tensor output = data.inputs.matmul(parameters[0].tensor.t()) + parameters[1].tensor;
    EXPECT_NEAR(evaluation.mse.value(), at::mse_loss(output, data.targets).item<double>(), 1e-6);
    EXPECT_NEAR(evaluation.loss, at::l1_loss(output, data.targets).item<double>(), 1e-6);
    EXPECT_FALSE(evaluation.perplexity.has_value());
    EXPECT_FALSE(evaluation.accuracy.has_value());
  }
}

// A loss of the user's own may leave them out without saying so.
TEST(TestMetrics, LeaveOutTargetsThatAreNoClasses) {
  at::manual_seed(1);
  TensorDataset data{.inputs = at::randn({kSamples, 2}),
                     .targets = at::randint(3, {kSamples}, at::kLong)};
  data.targets.narrow(0, 100, 500).fill_(-1);
  const Loss without = [](const at::Tensor& output, const at::Tensor& target) {
    return at::cross_entropy_loss(output, target, {}, at::Reduction::Mean, -1);
  };
  TorchTrainer trainer(model_factory<Line>(3), without, data, Trace::constant(32),
                       {.minibatch_size = 16, .threads = 2});
  const auto& parameters = trainer.parameters();
  const at::Tensor output = data.inputs.matmul(parameters[0].tensor.t()) + parameters[1].tensor;
  const double right = output.argmax(1).eq(data.targets).sum().item<double>();
  EXPECT_DOUBLE_EQ(trainer.evaluate(data).accuracy.value(), right / 200);
}

TEST(TestMetrics, NeverCountNaNAsCorrect) {
  at::manual_seed(1);
  const TensorDataset data{.inputs = at::randn({kSamples, 2}),
                           .targets = at::zeros({kSamples}, at::kLong)};
  TorchTrainer trainer(model_factory<Line>(3), cross_entropy_loss(), data, Trace::constant(32),
                       {.minibatch_size = 16, .top_k = 3, .threads = 2});
  // All outputs of these samples are NaN, and argmax() gives class 0.
  TensorDataset half{.inputs = data.inputs.clone(), .targets = data.targets};
  half.inputs.narrow(0, 0, kSamples / 2).fill_(std::nan(""));
  const Evaluation evaluation = trainer.evaluate(half);
  EXPECT_DOUBLE_EQ(evaluation.top_k_accuracy.value(), 0.5);
  const auto& parameters = trainer.parameters();
  const at::Tensor output = data.inputs.matmul(parameters[0].tensor.t()) + parameters[1].tensor;
  const double right =
      output.argmax(1).eq(0).narrow(0, kSamples / 2, kSamples / 2).sum().item<double>();
  EXPECT_DOUBLE_EQ(evaluation.accuracy.value(), right / kSamples);
}

// A logit above 0 is class 1, whatever the shape of outputs and targets.
TEST(TestMetrics, HaveTheAccuracyOfOneLogit) {
  at::manual_seed(1);
  const at::Tensor inputs = at::randn({kSamples, 2});
  const auto trained_on = [&](const at::Tensor& targets, Loss loss) {
    const TensorDataset data{.inputs = inputs, .targets = targets};
    TorchTrainer trainer(model_factory<Line>(1), std::move(loss), data, Trace::constant(32),
                         {.minibatch_size = 16, .top_k = 1, .threads = 2});
    const auto& parameters = trainer.parameters();
    const at::Tensor output = inputs.matmul(parameters[0].tensor.t()) + parameters[1].tensor;
    return std::pair(trainer.evaluate(data), output.squeeze(1));
  };
  const auto of = [](double threshold) {
    return Loss([](const at::Tensor& output, const at::Tensor& target) {
             return (output.flatten() - target.flatten()).square().mean();
           })
        .with_threshold(threshold);
  };
  const at::Tensor targets = at::randint(2, {kSamples}, at::kLong);
  for (const double threshold : {0.0, 0.5}) {
    for (const at::Tensor& shaped : {targets, targets.unsqueeze(1)}) {
      const auto [evaluation, output] = trained_on(shaped, of(threshold));
      const at::Tensor right = (output > threshold).eq(targets.to(at::kBool));
      EXPECT_NEAR(evaluation.accuracy.value(), right.to(at::kDouble).mean().item<double>(), 1e-12);
      EXPECT_EQ(evaluation.top_k_accuracy, evaluation.accuracy);
    }
  }
  // More classes than that are not told apart by one number.
  EXPECT_FALSE(trained_on(at::randint(3, {kSamples}, at::kLong), of(0)).first.accuracy);
}

TEST(TestMetrics, HaveThePerplexityAndTheBitsOfClasses) {
  at::manual_seed(1);
  const TensorDataset data{.inputs = at::randn({kSamples, 2}),
                           .targets = at::randint(3, {kSamples}, at::kLong)};
  TorchTrainer trainer(model_factory<Line>(3), cross_entropy_loss(), data, Trace::constant(32),
                       {.minibatch_size = 16,
                        .mse = true,
                        .perplexity = true,
                        .bytes_per_target = 2.5,
                        .threads = 2});
  const Evaluation evaluation = trainer.evaluate(data);
  EXPECT_DOUBLE_EQ(evaluation.perplexity.value(), std::exp(evaluation.loss));
  EXPECT_DOUBLE_EQ(evaluation.bits_per_byte.value(), std::log2(std::exp(evaluation.loss)) / 2.5);
  EXPECT_FALSE(evaluation.mse.has_value());
  TorchTrainer plain(model_factory<Line>(3), cross_entropy_loss(), data, Trace::constant(32),
                     {.minibatch_size = 16, .threads = 2});
  EXPECT_FALSE(plain.evaluate(data).perplexity.has_value());
  EXPECT_FALSE(plain.evaluate(data).bits_per_byte.has_value());
}

}  // namespace
}  // namespace rubato
