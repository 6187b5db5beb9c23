// What a rule answers besides the rate: the numbers of a step, and what becomes of the memory.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/base/state.hpp>

#include "loop/optim/make_optimizer.hpp"
#include "optim/flat_problem.hpp"
#include "support/random_values.hpp"

namespace rubato {
namespace {

using test::all_close;
using test::random_values;

constexpr double kStepRate = 0.01;
constexpr std::size_t kSize = 300;
// Two tensors, of which some steps do not reach the second.
const ParameterLayout kLayout{{200, kSize}, {0, 0}};

struct Step {
  OptimizerAnswer answer;
  bool reaches_second = true;
};

// Answers of every kind, and steps without any between them.
const std::array<Step, 12> kSteps{{{},
                                   {.answer = {}, .reaches_second = false},
                                   {.answer = {.beta1 = 0.7, .beta2 = 0.9, .epsilon = 1e-3}},
                                   {.answer = {.beta1 = 0.95}, .reaches_second = false},
                                   {},
                                   {.answer = {.mean_factor = 0.5, .variance_factor = 4}},
                                   {.answer = {.variance_factor = 0.25}, .reaches_second = false},
                                   {.answer = {.mean_factor = 0}},
                                   {.answer = {.beta2 = 0.5}},
                                   {.answer = {.forget_squares = true}},
                                   {},
                                   {.answer = {.mean_factor = 0, .forget_squares = true}}}};

// Adam by the book, element by element: the sum of the weights of a moment stands for its bias.
struct ByHand {
  double parameter = 0;
  double mean = 0;
  double square = 0;
  double largest = 0;
  double mean_weight = 0;
  double square_weight = 0;

  void change(const OptimizerAnswer& answer) {
    for (double* const of : {&square, &largest}) {
      if (!answer.variance_factor || mean_weight == 0) continue;
      const double m = mean / mean_weight;
      const double noise = *of / square_weight - m * m;
      if (noise > 0) *of = square_weight * (m * m + noise * *answer.variance_factor);
    }
    mean *= answer.mean_factor.value_or(1);
    if (answer.mean_factor == 0.0) mean_weight = 0;
    if (answer.forget_squares) square = largest = square_weight = 0;
  }

  void update(const AdamOptions& options, double decay, const OptimizerAnswer& answer, double g) {
    const double beta1 = answer.beta1.value_or(options.beta1);
    const double beta2 = answer.beta2.value_or(options.beta2);
    if (options.decoupled) {
      parameter *= 1 - kStepRate * decay;
    } else {
      g += decay * parameter;
    }
    mean = beta1 * mean + (1 - beta1) * g;
    mean_weight = beta1 * mean_weight + (1 - beta1);
    square = beta2 * square + (1 - beta2) * g * g;
    square_weight = beta2 * square_weight + (1 - beta2);
    largest = std::max(largest, square);
    const double of = (options.amsgrad ? largest : square) / square_weight;
    parameter -= kStepRate * (mean / mean_weight) /
                 (std::sqrt(of) + answer.epsilon.value_or(options.epsilon));
  }
};

OptimizerOptions adam(bool decoupled, bool amsgrad) {
  return {.method = AdamOptions{.beta1 = 0.8,
                                .beta2 = 0.95,
                                .amsgrad = amsgrad,
                                .epsilon = 1e-6,
                                .decoupled = decoupled},
          .weight_decay = 0.1};
}

template <class T>
void take(FlatOptimizer<T>& optimizer, std::vector<T>& parameters, std::size_t index,
          Workers& workers) {
  const std::vector<std::size_t> second{1};
  const auto gradient = random_values<T>(kSize, static_cast<std::uint32_t>(index) + 5);
  optimizer.step(
      {.parameters = parameters,
       .gradient_sum = gradient,
       .rates = {.update_rate = kStepRate, .optimizer = kSteps.at(index).answer},
       .unreached = kSteps.at(index).reaches_second ? std::span<const std::size_t>() : second},
      workers);
}

TEST(Answers, AreFollowedByAdamAsByHand) {
  for (const OptimizerOptions& options :
       {adam(false, false), adam(true, false), adam(false, true), adam(true, true)}) {
    const auto method = std::get<AdamOptions>(options.method);
    SCOPED_TRACE(testing::Message() << method.decoupled << method.amsgrad);
    Workers workers(2);
    const auto optimizer = make_optimizer<double>(options, kLayout, {});
    auto parameters = random_values<double>(kSize, 1);
    std::vector<ByHand> by_hand(kSize);
    for (std::size_t i = 0; i < kSize; ++i) by_hand[i].parameter = parameters[i];
    for (std::size_t index = 0; index < kSteps.size(); ++index) {
      take(*optimizer, parameters, index, workers);
      const auto gradient = random_values<double>(kSize, static_cast<std::uint32_t>(index) + 5);
      std::vector<double> expected;
      for (std::size_t i = 0; i < kSize; ++i) {
        const Step& step = kSteps.at(index);
        by_hand[i].change(step.answer);
        if (i < 200 || step.reaches_second) {
          by_hand[i].update(method, options.weight_decay, step.answer, gradient[i]);
        }
        expected.push_back(by_hand[i].parameter);
      }
      EXPECT_TRUE(all_close(parameters, expected, 1e-11, 1e-13)) << "step " << index;
    }
  }
}

TEST(Answers, HaveTheSameBitsOnEveryNumberOfThreadsAndAfterAResume) {
  for (const OptimizerOptions& options : {adam(false, true), adam(true, false)}) {
    std::vector<float> expected;
    for (const int threads : {1, 2, 4}) {
      for (const std::size_t resumed : {0U, 3U, 6U, 8U, 10U}) {
        Workers workers(threads);
        auto optimizer = make_optimizer<float>(options, kLayout, {});
        auto parameters = random_values<float>(kSize, 1);
        for (std::size_t index = 0; index < kSteps.size(); ++index) {
          if (index == resumed) {
            const State state = state_of(*optimizer);
            optimizer = make_optimizer<float>(options, kLayout, {});
            load_state(*optimizer, state);
          }
          take(*optimizer, parameters, index, workers);
        }
        if (expected.empty()) expected = parameters;
        EXPECT_EQ(parameters, expected) << threads << " threads, resumed at " << resumed;
      }
    }
  }
}

TEST(Answers, ThatAreTheOptionsChangeNoBit) {
  Workers workers(1);
  std::vector<std::vector<float>> trained;
  for (const OptimizerAnswer& answer :
       {OptimizerAnswer{}, OptimizerAnswer{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6}}) {
    const auto optimizer = make_optimizer<float>(adam(true, false), kLayout, {});
    auto& parameters = trained.emplace_back(random_values<float>(kSize, 1));
    for (std::uint32_t step = 0; step < 7; ++step) {
      optimizer->step({.parameters = parameters,
                       .gradient_sum = random_values<float>(kSize, step + 5),
                       .rates = {.update_rate = kStepRate, .optimizer = answer}},
                      workers);
    }
    EXPECT_FALSE(state_of(*optimizer).has("optimizer.adam.beta1_products"));
  }
  EXPECT_EQ(trained[0], trained[1]);
}

// One parameter with a gradient of 1 in each step, under momenta of 0.9, 0.5 and 0 and a velocity
// that is halved before the last step.
double moved(const std::string& name, double velocity_unit) {
  Workers workers(1);
  const auto optimizer = make_optimizer<double>(parse_optimizer(name, {.momentum = 0.9}),
                                                ParameterLayout::whole(1), {});
  EXPECT_EQ(optimizer->numbers().momentum, 0.9) << name;
  EXPECT_TRUE(optimizer->numbers().has_mean);
  std::vector<double> parameter{0};
  const std::vector<double> gradient{1};
  for (const OptimizerAnswer& answer :
       {OptimizerAnswer{}, OptimizerAnswer{.momentum = 0.5}, OptimizerAnswer{.momentum = 0.0},
        OptimizerAnswer{.mean_factor = 0.5}}) {
    optimizer->step({.parameters = parameter,
                     .gradient_sum = gradient,
                     .rates = {.update_rate = kStepRate, .optimizer = answer},
                     .layers = std::vector<ParameterNorms>{{}}},
                    workers);
  }
  return parameter[0] / -(kStepRate * velocity_unit);
}

TEST(Answers, AreFollowedByVelocities) {
  // 1, 0.5 x 1 + 1, 0 x 1.5 + 1 and 0.9 x 0.5 + 1.
  constexpr double kSum = 1 + 1.5 + 1 + 1.45;
  EXPECT_DOUBLE_EQ(moved("sgd", 1), kSum);
  EXPECT_DOUBLE_EQ(moved("sgd:form=mxnet", 1), kSum);
  EXPECT_DOUBLE_EQ(moved("lars", 1), kSum);
  // Its squares are those of the gradient from the first step on.
  EXPECT_NEAR(moved("rmsprop:alpha=0,eps=0", 1), kSum, 1e-12);
}

TEST(Answers, AreThoseThatAnOptimizerHas) {
  const auto numbers = [](const OptimizerOptions& options, std::vector<GroupOptions> groups = {}) {
    return make_optimizer<float>(options, ParameterLayout::whole(1), std::move(groups))->numbers();
  };
  EXPECT_EQ(numbers(adam(true, false)).beta2, 0.95);
  EXPECT_TRUE(numbers(adam(true, false)).has_squares);
  EXPECT_FALSE(numbers({}).has_mean);
  EXPECT_FALSE(numbers({}, {{.momentum = 0.5}}).momentum) << "a group keeps its own";
  EXPECT_TRUE(numbers({}, {{.momentum = 0.5}}).has_mean);
  EXPECT_EQ(numbers({.method = LarsOptions{}, .momentum = 0.5}).momentum_form, MomentumForm::mxnet);
  EXPECT_FALSE(numbers({.method = AdagradOptions{}}).has_mean);
  EXPECT_FALSE(numbers({.method = RmspropOptions{}}).momentum);
}

// Batches of half the reference: five reference batches are ten steps.
TEST(Lookahead, CountsSamplesWhereItIsToldTo) {
  Workers workers(1);
  const LookaheadOptions options{.k = 5, .alpha = 0.5};
  Lookahead<double> lookahead(make_optimizer<double>({}, ParameterLayout::whole(1), {}), options,
                              ParameterLayout::whole(1), /*in_samples=*/true);
  std::vector<double> parameter{0};
  const std::vector<double> gradient{-1};
  std::vector<double> after;
  for (int step = 0; step < 13; ++step) {
    // The last three are of double the reference batch.
    lookahead.step({.parameters = parameter,
                    .gradient_sum = gradient,
                    .rates = {.update_rate = 1},
                    .batch_size = step < 10 ? 64 : 256,
                    .reference_batch_size = 128},
                   workers);
    after.push_back(parameter[0]);
  }
  EXPECT_THAT(after, testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 5, 6, 7, 6.5));
}

}  // namespace
}  // namespace rubato
