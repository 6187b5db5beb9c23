// Adam whose second moment averages the squares of minibatches' gradients.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>

#include "loop/optim/make_optimizer.hpp"
#include "optim/flat_problem.hpp"
#include "support/error_of.hpp"
#include "support/random_values.hpp"

namespace rubato {
namespace {

using test::all_close;
using test::random_values;

constexpr std::size_t kValues = 60;
constexpr double kUpdateRate = 0.01;

OptimizerOptions options_of(bool decoupled, bool amsgrad, SecondMoment moment) {
  return {.method = AdamOptions{.beta1 = 0.8,
                                .beta2 = 0.9,
                                .amsgrad = amsgrad,
                                .epsilon = 1e-6,
                                .decoupled = decoupled,
                                .second_moment = moment},
          .weight_decay = 0.3};
}

// A step's minibatches: the weight of each, and its gradient.
struct Batch {
  std::vector<double> weights;
  std::vector<std::vector<double>> gradients;

  [[nodiscard]] double weight() const {
    double sum = 0;
    for (const double of : weights) sum += of;
    return sum;
  }
};

// Steps of 1 to 5 minibatches, of which the last has less weight than the others.
Batch batch_of(std::uint32_t step) {
  Batch batch;
  for (std::uint32_t i = 0; i <= step % 5; ++i) {
    batch.weights.push_back(i == step % 5 ? 0.25 : 1);
    batch.gradients.push_back(random_values<double>(kValues, 100 * step + i));
  }
  return batch;
}

// The book's formula: the mean of the squares of what each minibatch would be applied as.
struct FromMinibatches {
  double parameter = 0;
  double mean = 0;
  double square = 0;
  double largest = 0;
  double power1 = 1;
  double power2 = 1;

  void update(const OptimizerOptions& options, const Batch& batch, std::size_t i, double clip) {
    const auto adam = method_options<AdamOptions>(options.method);
    const double decay = adam.decoupled ? 0 : options.weight_decay;
    double m = 0;
    double v = 0;
    for (std::size_t of = 0; of < batch.weights.size(); ++of) {
      const double g = clip * batch.gradients[of][i] + decay * parameter;
      m += batch.weights[of] * g / batch.weight();
      v += batch.weights[of] * g * g / batch.weight();
    }
    if (adam.decoupled) parameter *= 1 - kUpdateRate * options.weight_decay;
    mean = adam.beta1 * mean + (1 - adam.beta1) * m;
    square = adam.beta2 * square + (1 - adam.beta2) * v;
    largest = std::max(largest, square);
    power1 *= adam.beta1;
    power2 *= adam.beta2;
    const double of = (adam.amsgrad ? largest : square) / (1 - power2);
    parameter -= kUpdateRate * mean / (1 - power1) / (std::sqrt(of) + adam.epsilon);
  }
};

TEST(SecondMomentOfMinibatches, IsAsByHand) {
  for (const bool decoupled : {false, true}) {
    for (const bool amsgrad : {false, true}) {
      SCOPED_TRACE(testing::Message() << decoupled << amsgrad);
      const auto options = options_of(decoupled, amsgrad, SecondMoment::minibatch);
      Workers workers(2);
      const auto optimizer = make_optimizer<double>(options, ParameterLayout::whole(kValues), {});
      auto parameters = random_values<double>(kValues, 1);
      std::vector<FromMinibatches> by_hand(kValues);
      for (std::size_t i = 0; i < kValues; ++i) by_hand[i].parameter = parameters[i];
      for (std::uint32_t step = 0; step < 12; ++step) {
        const Batch batch = batch_of(step);
        const double clip = step % 3 == 0 ? 0.5 : 1;
        std::vector<double> sum(kValues);
        std::vector<double> squares(kValues);
        std::vector<double> expected;
        for (std::size_t i = 0; i < kValues; ++i) {
          for (std::size_t of = 0; of < batch.weights.size(); ++of) {
            const double g = batch.gradients[of][i];
            sum[i] += batch.weights[of] * g;
            squares[i] += batch.weights[of] * g * g;
          }
          by_hand[i].update(options, batch, i, clip);
          expected.push_back(by_hand[i].parameter);
        }
        optimizer->step({.parameters = parameters,
                         .gradient_sum = sum,
                         .gradient_factor = clip / batch.weight(),
                         .rates = {.update_rate = kUpdateRate},
                         .square_sum = squares,
                         .square_factor = clip * clip / batch.weight()},
                        workers);
        ASSERT_TRUE(all_close(parameters, expected, 1e-11, 1e-13)) << "step " << step;
      }
    }
  }
}

// Also where the weight decay all but cancels the gradient, and v is of rounding only.
TEST(SecondMomentOfMinibatches, OfOneMinibatchIsTheSquareOfItsGradient) {
  for (const bool decoupled : {false, true}) {
    std::vector<std::vector<float>> trained;
    for (const SecondMoment moment : {SecondMoment::mean, SecondMoment::minibatch}) {
      Workers workers(1);
      const auto optimizer = make_optimizer<float>(options_of(decoupled, false, moment),
                                                   ParameterLayout::whole(kValues), {});
      auto& parameters = trained.emplace_back(random_values<float>(kValues, 1));
      for (std::uint32_t step = 0; step < 7; ++step) {
        auto gradient = random_values<float>(kValues, step + 5);
        for (std::size_t i = 0; i < kValues / 2; ++i) gradient[i] = -0.3F * parameters[i];
        std::vector<float> squares;
        squares.reserve(gradient.size());
        for (const float g : gradient) squares.push_back(g * g);
        optimizer->step({.parameters = parameters,
                         .gradient_sum = gradient,
                         .rates = {.update_rate = kUpdateRate},
                         .square_sum = squares},
                        workers);
      }
    }
    EXPECT_EQ(trained[0], trained[1]);
    EXPECT_TRUE(std::ranges::all_of(trained[1], [](float of) { return std::isfinite(of); }));
  }
}

TEST(SecondMomentOfMinibatches, NeedsTheirSquares) {
  Workers workers(1);
  const auto optimizer = make_optimizer<double>(options_of(true, false, SecondMoment::minibatch),
                                                ParameterLayout::whole(3), {});
  EXPECT_TRUE(optimizer->needs_minibatch_squares());
  EXPECT_TRUE(optimizer->numbers().of_minibatches);
  std::vector<double> parameters(3);
  const std::vector<double> gradient(3);
  EXPECT_EQ(error_of([&] {
              optimizer->step({.parameters = parameters,
                               .gradient_sum = gradient,
                               .rates = {.update_rate = kUpdateRate}},
                              workers);
            }),
            "the second moment of minibatches needs the squares of 3 values and has those of 0; "
            "accepted: one in Update::square_sum for each");
  const auto plain = make_optimizer<double>(options_of(true, false, SecondMoment::mean),
                                            ParameterLayout::whole(3), {});
  EXPECT_FALSE(plain->needs_minibatch_squares());
  EXPECT_FALSE(plain->numbers().of_minibatches);
}

}  // namespace
}  // namespace rubato
