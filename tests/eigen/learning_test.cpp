// They learn.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/eigen.hpp>

#include "eigen/support.hpp"
#include "loop/data/images/digits.hpp"
#include "support/matchers.hpp"
#include "support/recorded.hpp"

namespace rubato {
namespace {

struct DigitRows {
  DenseDataset<float> train;
  DenseDataset<float> test;
};

const DigitRows& digit_rows() {
  static const DigitRows rows = [] {
    const TrainTestImages images = builtin_digits();
    const PixelStatistics statistics = pixel_statistics(images.train);
    return DigitRows{to_rows<float>(images.train, statistics),
                     to_rows<float>(images.test, statistics)};
  }();
  return rows;
}

std::shared_ptr<test::Recorder> trained(std::unique_ptr<Objective> network, double rate,
                                        std::int64_t epochs) {
  Trainer trainer(std::move(network), Trace::constant(128),
                  {.epochs = epochs,
                   .learning_rate = rate,
                   .schedule = "cosine:total=" + std::to_string(epochs),
                   .optimizer = {.momentum = 0.9}});
  auto recorder = trainer.add_observer<test::Recorder>();
  trainer.fit();
  return recorder;
}

// Of what these digits let a linear model learn, 90 %, all but rounding.
TEST(Learning, SoftmaxRegressionOnDigits) {
  const auto recorder =
      trained(softmax_regression(digit_rows().train, {.test = digit_rows().test}), 0.04, 5);
  EXPECT_GT(recorder->steps.front().loss, 2);
  EXPECT_LT(recorder->epochs.back().train_loss, recorder->epochs.front().train_loss);
  EXPECT_GT(recorder->epochs.back().test->accuracy, 0.89);
}

TEST(Learning, PerceptronOnDigits) {
  for (const auto& activation : kActivations) {
    const auto recorder = trained(
        multi_layer_perceptron(
            digit_rows().train,
            {.hidden = {128, 64}, .activation = activation.value, .test = digit_rows().test}),
        0.1, 2);
    EXPECT_GT(recorder->epochs.back().test->accuracy, 0.95) << activation.name;
  }
}

// At rates that are usual for each.
TEST(Learning, PerceptronOnDigitsWithAdaptiveOptimizers) {
  for (const auto& [name, rate] : std::vector<std::pair<std::string, double>>{{"adam", 0.003},
                                                                              {"adamw", 0.003},
                                                                              {"rmsprop", 0.002},
                                                                              {"adagrad", 0.01},
                                                                              {"muon", 0.003}}) {
    Trainer trainer(multi_layer_perceptron(digit_rows().train,
                                           {.hidden = {128, 64}, .test = digit_rows().test}),
                    Trace::constant(128),
                    {.epochs = 3,
                     .learning_rate = rate,
                     .rule = "root",
                     .optimizer = parse_optimizer(name, {})});
    const auto recorder = test::recorded(trainer);
    EXPECT_GT(recorder->epochs.back().test->accuracy, 0.95) << name;
  }
}

// A plane with noise: the parameters found are those of the plane.
TEST(Learning, LeastSquaresOfAPlane) {
  constexpr std::size_t kSamples = 512;
  const std::vector<double> inputs = test::random_values<double>(2 * kSamples, 1);
  const std::vector<double> noise = test::random_values<double>(kSamples, 2);
  std::vector<double> targets(kSamples);
  for (std::size_t i = 0; i < kSamples; ++i) {
    targets[i] = 3 * inputs[2 * i] - 2 * inputs[2 * i + 1] + 0.5 + 0.01 * noise[i];
  }
  Trainer trainer(least_squares(DenseDataset<double>::with_targets(inputs, targets)),
                  Trace::constant(64), {.epochs = 30, .learning_rate = 0.05, .threads = 2});
  trainer.fit();
  EXPECT_THAT(trainer.parameters()[0].values<double>(),
              ElementsAre(DoubleNear(3, 0.005), DoubleNear(-2, 0.005)));
  EXPECT_THAT(trainer.parameters()[1].values<double>(), ElementsAre(DoubleNear(0.5, 0.005)));
}

}  // namespace
}  // namespace rubato
