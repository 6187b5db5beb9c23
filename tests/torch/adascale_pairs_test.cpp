#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "small_run.hpp"
#include "support.hpp"

namespace rubato {
namespace {

using test::options_of;
using test::trainer_on;

// Keeps the flattened mean gradient of every step.
class FlatGradients : public Observer {
 public:
  bool wants_gradients(const StepPlan&) const override { return true; }
  void on_gradients(Training&, const StepPlan&, std::span<const NamedArray> gradients) override {
    std::vector<at::Tensor> flat;
    for (const NamedTensor& gradient : tensors_of(gradients))
      flat.push_back(gradient.tensor.flatten());
    kept.push_back(at::cat(flat).clone());
  }
  std::vector<at::Tensor> kept;
};

double square_of(const at::Tensor& tensor) {
  return tensor.square().sum().item<double>();
}

// The gains by the formula, from the gradients of the steps.
std::vector<double> gains_of(const std::vector<at::Tensor>& gradients, double scale) {
  constexpr double kSmoothing = 0.999;
  std::vector<double> gains{1};
  double variance = 0;
  double signal = 0;
  double weight = 0;
  for (std::size_t i = 1; i < gradients.size(); ++i) {
    const double of_minibatch = square_of(gradients[i] - gradients[i - 1]) / 2;
    const double of_signal = square_of((gradients[i] + gradients[i - 1]) / 2) - of_minibatch / 2;
    variance = kSmoothing * variance + (1 - kSmoothing) * of_minibatch * scale;
    signal = kSmoothing * signal + (1 - kSmoothing) * std::max(of_signal, 0.0);
    weight = kSmoothing * weight + (1 - kSmoothing);
    const double v = variance / weight;
    const double s = signal / weight;
    gains.push_back((v + s) / (v / scale + s));
  }
  return gains;
}

TEST(AdaScaleOfOneMinibatch, EstimatesFromConsecutiveSteps) {
  TrainOptions options = options_of("adascale");
  options.epochs = 3;
  options.reference_batch_size = 2;
  options.log_noise = true;
  TorchTrainer trainer = trainer_on(Trace::constant(4), options);
  const auto gradients = trainer.add_observer<FlatGradients>();
  const auto recorder = test::trained(trainer);
  const std::vector<double> expected = gains_of(gradients->kept, 2);
  ASSERT_EQ(recorder->steps.size(), expected.size());
  EXPECT_FALSE(recorder->steps[0].noise_scale.has_value());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(recorder->steps[i].gain, expected[i], 1e-9) << i;
    EXPECT_NEAR(recorder->steps[i].learning_rate, 0.1 * expected[i], 1e-9) << i;
    if (i > 0) {
      EXPECT_EQ(recorder->steps[i].measured_gain, recorder->steps[i].gain) << i;
    }
  }
  EXPECT_GT(recorder->steps.back().gain, 1.01) << "it is not the constant rule";
  EXPECT_LT(recorder->steps.back().gain, 2);
}

// Steps of several minibatches measure by themselves, and break the pair.
TEST(AdaScaleOfOneMinibatch, TakesNoPairAcrossLargerSteps) {
  TrainOptions options = options_of("adascale");
  options.epochs = 1;
  options.reference_batch_size = 2;
  TorchTrainer trainer = trainer_on(test::trace_of({4, 4, 8, 4, 4, 16}, TraceEnd::cycle), options);
  const auto recorder = test::trained(trainer);
  std::vector<double> gains;
  // What is known is kept: the gain of a scale of 2 changes only where something was measured.
  for (const StepRecord& step : recorder->steps) {
    if (step.scale == 2) gains.push_back(step.gain);
  }
  ASSERT_EQ(gains.size(), 6);
  EXPECT_EQ(gains[0], 1);
  EXPECT_NE(gains[1], gains[0]);
  EXPECT_NE(gains[2], gains[1]) << "the step of two minibatches";
  EXPECT_NE(gains[3], gains[2]);
  EXPECT_NE(gains[4], gains[3]) << "the step of four minibatches";
  EXPECT_NE(gains[5], gains[4]);

  options.rule = "adascale:smoothing=0";
  TorchTrainer forgetful =
      trainer_on(test::trace_of({4, 4, 8, 4, 4, 16}, TraceEnd::cycle), options);
  const auto records = test::trained(forgetful);
  // With no memory the step after the larger one has the averages of the larger one: a gain that
  // the formula turns from scale 4 to scale 2.
  const double at_4 = records->steps[2].gain;
  const double ratio = (at_4 - 1) / (1 - at_4 / 4);  // variance / signal
  EXPECT_NEAR(records->steps[3].gain, (ratio + 1) / (ratio / 2 + 1), 1e-9);
}

TEST(AdaScaleOfOneMinibatch, HasTheSameBitsForAllThreadsAndCores) {
  const auto train = [](std::int64_t cores, int threads) {
    TrainOptions options = options_of("adascale");
    options.reference_batch_size = 2;
    options.groups = {no_decay_for_vectors()};
    options.cores = cores;
    options.threads = threads;
    TorchTrainer trainer(builtin_model("mnist-cnn", {}), nll_loss(), test::digits(64),
                         test::trace_of({4, 4, 4, 12}, TraceEnd::cycle), options);
    trainer.fit();
    return test::state_bytes(trainer);
  };
  const std::string expected = train(1, 1);
  EXPECT_TRUE(train(2, 2) == expected);
  EXPECT_TRUE(train(8, 4) == expected);
}

TEST(AdaScaleOfOneMinibatch, ResumesExactlyFromEveryState) {
  TrainOptions options = options_of("adascale");
  options.reference_batch_size = 2;
  options.log_noise = true;
  const auto trace = [] { return test::trace_of({4, 4, 4, 8}, TraceEnd::cycle); };
  TorchTrainer whole = trainer_on(trace(), options);
  const auto states = whole.add_observer<test::StateKeeper>();
  const auto all = test::trained(whole);
  for (const State& state : states->states) {
    TorchTrainer trainer = trainer_on(trace(), options);
    const auto rest = trainer.add_observer<test::Recorder>();
    trainer.load_state(state);
    const auto done = static_cast<std::size_t>(trainer.result().steps);
    trainer.fit();
    EXPECT_TRUE(test::state_bytes(trainer) == test::state_bytes(whole)) << done;
    for (std::size_t i = 0; i < rest->steps.size(); ++i) {
      EXPECT_EQ(rest->steps[i].measured_gain, all->steps[done + i].measured_gain) << done + i;
      EXPECT_EQ(rest->steps[i].noise_scale, all->steps[done + i].noise_scale) << done + i;
    }
  }
}

TEST(AdaScaleOfOneMinibatch, CostsOtherRulesNothing) {
  TrainOptions options = options_of("linear");
  TorchTrainer trainer = trainer_on(Trace::constant(4), options);
  trainer.fit();
  EXPECT_FALSE(trainer.state().has("gradient_of_previous_step"));
}

}  // namespace
}  // namespace rubato
