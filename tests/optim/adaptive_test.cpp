// Adam, AdamW, RMSprop and Adagrad: the numbers of their formulas, and the same bits whoever
// computes them.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>

#include "optim/adaptive_cases.hpp"
#include "support/matchers.hpp"
#include "support/random_values.hpp"

namespace rubato {
namespace {

using test::adaptive_cases;
using test::AdaptiveCase;
using test::layout_of_tensors;
using test::random_values;

// The second group has half the rate, so that its tensors are ranges of their own.
const std::vector<GroupOptions> kTwoGroups{{}, {.learning_rate_factor = 0.5}};
std::vector<double> rates_of_elements(const std::vector<std::size_t>& sizes, double rate) {
  std::vector<double> rates;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    rates.insert(rates.end(), sizes[i], i % 2 == 0 ? rate : rate / 2);
  }
  return rates;
}

template <class T>
class AdaptiveOf : public testing::Test {};
using AdaptiveTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(AdaptiveOf, AdaptiveTypes);

// The formulas as the headers have them, element by element. Up to three steps a power is the same
// bits whichever way it is multiplied.
template <class T>
struct ByFormula {
  ByFormula(const OptimizerOptions& of, std::vector<T> initial)
      : options(of),
        parameters(std::move(initial)),
        mean(parameters.size()),
        square(parameters.size(),
               static_cast<T>(method_options<AdagradOptions>(of.method).initial_accumulator)),
        largest(parameters.size()),
        velocity(parameters.size()) {}

  void step(const std::vector<T>& sum, const std::vector<T>& squares, T factor, T clip,
            const std::vector<double>& rates) {
    ++steps;
    const auto adam = method_options<AdamOptions>(options.method);
    power1 *= adam.beta1;
    power2 *= adam.beta2;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      T g = std::clamp(factor * sum[i], -clip, clip);
      if (adam.decoupled) {
        parameters[i] *= static_cast<T>(1 - rates[i] * options.weight_decay);
      } else {
        g += static_cast<T>(options.weight_decay) * parameters[i];
      }
      const T undecayed = factor * sum[i];
      variance = std::max(factor * squares[i] - undecayed * undecayed, T{0});
      move(i, g, rates[i]);
    }
  }

  void move(std::size_t i, T g, double rate) {
    if (const auto* const adagrad = std::get_if<AdagradOptions>(&options.method)) {
      square[i] += g * g;
      const double fallen = 1 + (steps - 1) * adagrad->lr_decay;
      parameters[i] -= static_cast<T>(rate / fallen) * g /
                       (std::sqrt(square[i]) + static_cast<T>(adagrad->epsilon));
    } else if (const auto* const rmsprop = std::get_if<RmspropOptions>(&options.method)) {
      average(square[i], rmsprop->alpha, g, g);
      average(mean[i], rmsprop->alpha, g, T{1});
      const T of = rmsprop->centered ? square[i] - mean[i] * mean[i] : square[i];
      const T divisor = std::sqrt(of) + static_cast<T>(rmsprop->epsilon);
      if (options.momentum == 0) {
        parameters[i] -= static_cast<T>(rate) * g / divisor;
        return;
      }
      velocity[i] = static_cast<T>(options.momentum) * velocity[i] + g / divisor;
      parameters[i] -= static_cast<T>(rate) * velocity[i];
    } else {
      const auto adam = std::get<AdamOptions>(options.method);
      average(mean[i], adam.beta1, g, T{1});
      average(square[i], adam.beta2, g, g);
      if (adam.second_moment == SecondMoment::minibatch) {
        square[i] += static_cast<T>(1 - adam.beta2) * variance;
      }
      largest[i] = std::max(largest[i], square[i]);
      const T of = adam.amsgrad ? largest[i] : square[i];
      const T divisor =
          std::sqrt(of) / static_cast<T>(std::sqrt(1 - power2)) + static_cast<T>(adam.epsilon);
      parameters[i] -= static_cast<T>(rate / (1 - power1)) * mean[i] / divisor;
    }
  }

  static void average(T& value, double kept, T g, T times) {
    value = static_cast<T>(kept) * value + static_cast<T>(1 - kept) * g * times;
  }

  OptimizerOptions options;
  int steps = 0;
  double power1 = 1;
  double power2 = 1;
  // The variance of the minibatches' gradients.
  T variance = 0;
  std::vector<T> parameters;
  std::vector<T> mean;
  std::vector<T> square;
  std::vector<T> largest;
  std::vector<T> velocity;
};

// One task updates 65,536 parameters. Ranges are cut there, and where tensors of another group end.
TYPED_TEST(AdaptiveOf, HasTheBitsOfItsFormulaWhereverItIsCut) {
  using T = TypeParam;
  constexpr std::size_t kTask = 65'536;
  constexpr double kRate = 0.01;
  const T factor = T{1} / T{3};
  const auto clip = static_cast<T>(0.4);
  for (const AdaptiveCase& of : adaptive_cases()) {
    SCOPED_TRACE(of.name);
    for (const std::vector<std::size_t>& sizes :
         {std::vector<std::size_t>{0}, {1}, {15, 1, 2, 33}, {kTask - 7, 20, 0, kTask + 3, 1}}) {
      const ParameterLayout layout = layout_of_tensors(sizes);
      ByFormula<T> expected(of.options, random_values<T>(layout.size(), 1));
      // Some are smaller than the square of the mean, as rounding makes them.
      auto squares = random_values<T>(layout.size(), 20);
      for (T& value : squares) value *= value;
      std::vector<std::vector<T>> sums;
      for (std::uint32_t step = 0; step < 3; ++step) {
        sums.push_back(random_values<T>(layout.size(), 10 + step));
        expected.step(sums.back(), squares, factor, clip, rates_of_elements(sizes, kRate));
      }
      for (const int threads : {1, 2, 4}) {
        Workers workers(threads);
        const auto optimizer = make_optimizer<T>(of.options, layout, kTwoGroups);
        auto parameters = random_values<T>(layout.size(), 1);
        for (const std::vector<T>& sum : sums) {
          optimizer->step({.parameters = parameters,
                           .gradient_sum = sum,
                           .gradient_factor = factor,
                           .clip = clip,
                           .rates = {.update_rate = kRate},
                           .square_sum = squares,
                           .square_factor = factor},
                          workers);
        }
        EXPECT_TRUE(parameters == expected.parameters)
            << layout.size() << " parameters, " << threads << " threads";
      }
    }
  }
}

// Parameters that never have a gradient, and the padding between tensors.
TYPED_TEST(AdaptiveOf, StandsStillWhereItWouldDivideByZero) {
  using T = TypeParam;
  Workers workers(1);
  for (const char* const name :
       {"adam:amsgrad=true,eps=0", "adamw:amsgrad=true,eps=0", "rmsprop:eps=0", "adagrad:eps=0"}) {
    for (const double momentum : {0.0, 0.9}) {
      const auto optimizer = make_optimizer<T>(parse_optimizer(name, {.momentum = momentum}),
                                               ParameterLayout::whole(40), {});
      auto parameters = random_values<T>(40, 1);
      const auto initial = parameters;
      std::vector<T> gradient(40, T{0});
      gradient[7] = T{1};
      for (int step = 0; step < 3; ++step) {
        optimizer->step(
            {.parameters = parameters, .gradient_sum = gradient, .rates = {.update_rate = 0.125}},
            workers);
      }
      EXPECT_LT(parameters[7], initial[7] - T{1} / 10) << name;
      parameters[7] = initial[7];
      EXPECT_TRUE(parameters == initial) << name;
    }
  }
}

// With gradients that stay the same the deviation is 0 but for rounding, which may be negative.
TYPED_TEST(AdaptiveOf, TakesNoRootOfANegativeDeviation) {
  using T = TypeParam;
  Workers workers(1);
  constexpr std::size_t kSize = 200;
  const auto optimizer =
      make_optimizer<T>({.method = RmspropOptions{.alpha = 0.1, .centered = true, .epsilon = 1}},
                        ParameterLayout::whole(kSize), {});
  std::vector<T> parameters(kSize, T{0});
  const auto gradient = random_values<T>(kSize, 1);
  bool negative = false;
  std::vector<T> square(kSize, T{0});
  std::vector<T> mean(kSize, T{0});
  for (int step = 0; step < 100; ++step) {
    optimizer->step(
        {.parameters = parameters, .gradient_sum = gradient, .rates = {.update_rate = 0.1}},
        workers);
    for (std::size_t i = 0; i < kSize; ++i) {
      ByFormula<T>::average(square[i], 0.1, gradient[i], gradient[i]);
      ByFormula<T>::average(mean[i], 0.1, gradient[i], T{1});
      negative = negative || square[i] - mean[i] * mean[i] < T{0};
    }
  }
  EXPECT_TRUE(negative) << "or else this shows nothing";
  EXPECT_TRUE(std::all_of(parameters.begin(), parameters.end(),
                          [](T value) { return std::isfinite(value); }));
}

// A rule may change the weight decay, coupled or not. Without a gradient AdamW does nothing else.
TEST(Adaptive, FollowsTheFactorOnTheWeightDecay) {
  Workers workers(1);
  const auto adamw =
      make_optimizer<double>({.method = AdamOptions{.decoupled = true}, .weight_decay = 0.1},
                             ParameterLayout::whole(3), {});
  std::vector<double> parameters{1, -2, 4};
  adamw->step({.parameters = parameters,
               .gradient_sum = std::vector<double>(3),
               .rates = {.update_rate = 0.5, .weight_decay_factor = 3}},
              workers);
  EXPECT_THAT(parameters, ElementsAre(DoubleEq(0.85), DoubleEq(-1.7), DoubleEq(3.4)));
}

}  // namespace
}  // namespace rubato
