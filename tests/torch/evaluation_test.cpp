#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/module.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/loop/images.hpp>

#include "support.hpp"

namespace rubato {
namespace {

TorchTrainer trained_trainer(int threads) {
  TorchTrainer trainer(
      builtin_model("mnist-cnn", {}), nll_loss(), test::digits(320),
      test::trace_of({64}, TraceEnd::hold),
      {.epochs = 1, .learning_rate = 0.05, .reference_batch_size = 64, .threads = threads});
  trainer.fit();
  return trainer;
}

// The trainer's model in libtorch alone, in evaluation.
Model plain_model(const TorchTrainer& trainer) {
  const at::NoGradGuard no_grad;
  Model model = builtin_model("mnist-cnn", {})();
  for (std::size_t i = 0; i < model.parameters.size(); ++i) {
    model.parameters[i].tensor.copy_(trainer.parameters()[i].tensor);
  }
  for (std::size_t i = 0; i < model.buffers.size(); ++i) {
    model.buffers[i].tensor.copy_(trainer.buffers()[i].tensor);
  }
  model.set_training(false);
  return model;
}

TEST(Evaluation, IsWhatLibtorchAloneComputes) {
  const TensorDataset all = test::digits(777, 9);
  for (const int threads : {1, 2, 4}) {
    TorchTrainer trainer = trained_trainer(threads);
    const at::NoGradGuard no_grad;
    const Model plain = plain_model(trainer);
    // Less than one batch of the evaluation, one, a little more, and some.
    for (const std::int64_t count : {1, 250, 251, 777}) {
      const TensorDataset data{.inputs = all.inputs.narrow(0, 0, count),
                               .targets = all.targets.narrow(0, 0, count)};
      const at::Tensor output = plain.forward(data.inputs);
      const auto correct = output.argmax(1).eq(data.targets).sum().item<std::int64_t>();
      const double loss = at::nll_loss(output.to(at::kDouble), data.targets).item<double>();

      const Evaluation evaluation = trainer.evaluate(data);
      EXPECT_EQ(evaluation.samples, count);
      EXPECT_NEAR(evaluation.loss, loss, 1e-5 * loss) << count << " samples";
      EXPECT_EQ(evaluation.accuracy, static_cast<double>(correct) / static_cast<double>(count));
    }
  }
}

// Writes into what it is given.
struct Doubling : torch::nn::Module {
  Doubling() : linear(register_module("linear", torch::nn::Linear(4, 2))) {}
  at::Tensor forward(at::Tensor input) { return linear->forward(input.mul_(2)); }
  torch::nn::Linear linear;
};

TEST(Evaluation, LeavesSamplesToModelsThatWrite) {
  const TensorDataset data{.inputs = at::arange(40, at::kFloat).sin().view({10, 4}),
                           .targets = at::arange(10).remainder(2)};
  const at::Tensor before = data.inputs.clone();
  TorchTrainer trainer(model_factory<Doubling>(), cross_entropy_loss(), data,
                       test::trace_of({5}, TraceEnd::hold), {.epochs = 1, .minibatch_size = 5});
  trainer.set_test(data);
  trainer.fit();
  const Evaluation first = trainer.evaluate(data);
  EXPECT_EQ(trainer.evaluate(data).loss, first.loss);
  EXPECT_TRUE(at::equal(data.inputs, before));
}

TEST(Evaluation, ChangesNothing) {
  const auto train = [](bool evaluating) {
    TorchTrainer trainer(builtin_model("mnist-cnn", {}), nll_loss(), test::digits(128),
                         test::trace_of({64}, TraceEnd::hold), {.epochs = 2, .threads = 2});
    if (evaluating) trainer.set_test(test::digits(300, 2));
    trainer.fit();
    std::string state = test::state_bytes(trainer);
    static_cast<void>(trainer.evaluate(test::digits(10)));
    EXPECT_TRUE(test::state_bytes(trainer) == state);
    return state;
  };
  EXPECT_TRUE(train(true) == train(false));
}

TEST(Evaluation, OfTargetsThatAreNoClassesHasNoAccuracy) {
  const at::Tensor inputs = at::arange(12.0).reshape({6, 1, 1, 2});
  const Loss distance = [](const at::Tensor& output, const at::Tensor& target) {
    return (output.sum(1) - target.sum(-1)).square().mean();
  };
  for (const at::Tensor& targets : {
           at::ones({6, 3}),            // regression
           at::ones({6}),               // of one number
           at::ones({6, 3}, at::kLong)  // several labels
       }) {
    const TensorDataset data{.inputs = inputs, .targets = targets};
    TorchTrainer trainer(
        builtin_model("softmax", {.channels = 1, .height = 1, .width = 2, .classes = 3}), distance,
        data, Trace::constant(2), {.minibatch_size = 2, .threads = 1});
    const Evaluation evaluation = trainer.evaluate(data);
    EXPECT_EQ(evaluation.accuracy, std::nullopt);
    EXPECT_GT(evaluation.loss, 0);
  }
}

TEST(ToTensors, NormalisesPixelsAndKeepsTheirPlaces) {
  const ImageSet images{.count = 2,
                        .height = 2,
                        .width = 3,
                        .pixels = {0, 255, 51, 102, 0, 0, 1, 2, 3, 4, 5, 255},
                        .labels = {7, 3}};
  // MNIST's; the values for black and white are well known.
  const TensorDataset data = to_tensors(images, {.mean = 0.1307, .deviation = 0.3081});
  EXPECT_EQ(data.size(), 2);
  ASSERT_EQ(data.inputs.sizes(), (std::vector<std::int64_t>{2, 1, 2, 3}));
  ASSERT_EQ(data.inputs.scalar_type(), at::kFloat);
  const auto pixel = [&](std::int64_t image, std::int64_t row, std::int64_t column) {
    return data.inputs[image][0][row][column].item<float>();
  };
  EXPECT_FLOAT_EQ(pixel(0, 0, 0), -0.42421296F);
  EXPECT_FLOAT_EQ(pixel(0, 0, 1), 2.8214867F);
  EXPECT_FLOAT_EQ(pixel(0, 0, 2), static_cast<float>((0.2 - 0.1307) / 0.3081));
  EXPECT_FLOAT_EQ(pixel(0, 1, 0), static_cast<float>((0.4 - 0.1307) / 0.3081));
  EXPECT_FLOAT_EQ(pixel(1, 1, 1), static_cast<float>((5.0 / 255 - 0.1307) / 0.3081));
  EXPECT_FLOAT_EQ(pixel(1, 1, 2), 2.8214867F);
  ASSERT_EQ(data.targets.scalar_type(), at::kLong);
  EXPECT_TRUE(at::equal(data.targets, at::tensor(std::vector<std::int64_t>{7, 3})));
}

TEST(ToTensors, WithTheSetsOwnStatisticsHasMean0AndDeviation1) {
  const at::Tensor inputs = test::digits(200).inputs.to(at::kDouble);
  EXPECT_NEAR(inputs.mean().item<double>(), 0, 1e-6);
  EXPECT_NEAR(inputs.std(/*unbiased=*/false).item<double>(), 1, 1e-6);
}

}  // namespace
}  // namespace rubato
