// Whoever computes it: the trained parameters, and every number reported on the way.

#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/eigen.hpp>

#include "eigen/support.hpp"
#include "support/rule_options.hpp"
#include "support/sizes.hpp"

namespace rubato {
namespace {

using MakeObjective = std::function<std::unique_ptr<Objective>()>;

struct NamedObjective {
  std::string name;
  MakeObjective make;

  // As the name of the test has it.
  friend std::ostream& operator<<(std::ostream& out, const NamedObjective& objective) {
    return out << objective.name;
  }
};

std::unique_ptr<Objective> make_linear_fit() {
  return function_objective<double>(
      {.initial = {0, 0, 0},
       .samples = 350,
       .value_and_gradient = [](std::span<const double> parameters,
                                std::span<const std::int64_t> samples, std::span<double> gradient) {
         double sum = 0;
         for (const std::int64_t sample : samples) {
           const auto x = static_cast<double>(sample % 7) / 7;
           const double error =
               parameters[0] + x * (parameters[1] + x * parameters[2]) - std::sin(x);
           sum += error * error / 2;
           for (std::size_t i = 0; i < 3; ++i) {
             gradient[i] +=
                 error * std::pow(x, static_cast<double>(i)) / static_cast<double>(samples.size());
           }
         }
         return sum / static_cast<double>(samples.size());
       }});
}

const std::vector<NamedObjective>& objectives() {
  static const auto train = test::digits(350);
  static const auto held_out = test::digits(300, 2);
  static const std::vector<NamedObjective> all{
      {"softmax", [] { return softmax_regression(train, {.test = held_out}); }},
      {"perceptron",
       [] {
         return multi_layer_perceptron(
             train, {.hidden = {20, 13}, .activation = Activation::tanh, .test = held_out});
       }},
      {"least_squares", [] { return least_squares(test::random_targets<double>(350, 9, 2)); }},
      {"quadratic",
       [] { return noisy_quadratic<float>({.dim = 101, .condition = 50, .samples = 350}); }},
      {"function", make_linear_fit}};
  return all;
}

// Steps of 1, 13, 3, 24, 2 minibatches, twice: one odd tree after the other, and on 64 cores always
// idle ones.
constexpr std::int64_t kStepsInAll = 10;

class SameBits : public testing::TestWithParam<NamedObjective> {
 protected:
  static Trainer trainer_of(const std::function<void(TrainOptions&)>& change) {
    TrainOptions options{.epochs = 2,
                         .minibatch_size = 8,
                         .learning_rate = 0.02,
                         .reference_batch_size = 32,
                         .optimizer = {.momentum = 0.5, .weight_decay = 1e-4},
                         .log_noise = true};
    change(options);
    return Trainer(GetParam().make(), test::trace_of({8, 104, 24, 192, 16}), options);
  }
};

TEST_P(SameBits, WhoeverComputes) {
  EXPECT_EQ(test::difference_in_bits(trainer_of, kStepsInAll), std::nullopt);
}

// They remember something from step to step, and share out their update.
TEST_P(SameBits, WithAdaptiveOptimizers) {
  for (const char* const spec :
       {"adam:amsgrad=true", "adam:second-moment=minibatch", "rmsprop:centered=true", "muon"}) {
    const auto make = [spec](const std::function<void(TrainOptions&)>& change) {
      return trainer_of([&](TrainOptions& options) {
        options.optimizer = parse_optimizer(spec, {.weight_decay = 1e-4});
        change(options);
      });
    };
    EXPECT_EQ(test::difference_in_bits(make, kStepsInAll), std::nullopt) << spec;
  }
}

TEST_P(SameBits, ButNotForAnotherRate) {
  Trainer one = trainer_of([](TrainOptions& options) { options.threads = 2; });
  Trainer other = trainer_of([](TrainOptions& options) { options.learning_rate = 0.03; });
  one.fit();
  other.fit();
  EXPECT_EQ(one.result().steps, kStepsInAll);
  EXPECT_NE(test::difference_of(one, other), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Objectives, SameBits, testing::ValuesIn(objectives()),
                         [](const auto& test) { return test.param.name; });

// Batches change with every step, so that the resumes among the ways are in the middle of a jump.
TEST(SameBitsOfRules, ThatAnswerMoreThanARate) {
  for (std::size_t i = 0; i < test::kRuleOptions.size(); i += test::cases<std::size_t>(3, 1)) {
    const test::RuleOptions& of = test::kRuleOptions[i];
    const auto make = [&of](const std::function<void(TrainOptions&)>& change) {
      TrainOptions options{.epochs = 2,
                           .minibatch_size = 8,
                           .learning_rate = 0.02,
                           .reference_batch_size = 32,
                           .log_noise = true};
      of.set(options);
      change(options);
      return Trainer(least_squares(test::random_targets<float>(350, 9, 2)),
                     test::trace_of({8, 104, 24, 192, 16}), options);
    };
    EXPECT_EQ(test::difference_in_bits(make, kStepsInAll), std::nullopt)
        << of.rule << " " << of.optimizer << " " << of.memory << " " << of.on_batch_change;
  }
}

// Threads and cores decide which minibatches one pass computes.
TEST(SameBitsOfPasses, ThatSpanCores) {
  const auto train = test::digits(350);
  std::atomic<std::int64_t> widest = 0;
  const auto trainer_of = [&](int threads, std::int64_t cores, bool one_by_one = false) {
    TrainOptions options{.epochs = 2, .minibatch_size = 8, .learning_rate = 0.02};
    options.optimizer.momentum = 0.5;
    options.cores = cores;
    options.threads = threads;
    options.log_minibatches = one_by_one;
    options.on_span = [&widest](const Span& span) {
      std::int64_t before = widest;
      while (before < span.cores && !widest.compare_exchange_weak(before, span.cores)) {
      }
    };
    return Trainer(
        multi_layer_perceptron(train, {.hidden = {20, 13}, .activation = Activation::tanh}),
        test::trace_of({8, 104, 24, 192, 16}), options);
  };
  // It has as many threads as any, because none has more than another trainer that lives.
  Trainer one_by_one = trainer_of(7, 1, /*one_by_one=*/true);
  one_by_one.fit();
  EXPECT_EQ(widest, 1);
  for (const int threads : {1, 2, 3, 7}) {
    for (std::int64_t cores = 1; cores <= 9; ++cores) {
      Trainer trainer = trainer_of(threads, cores);
      trainer.fit();
      EXPECT_EQ(test::difference_of(trainer, one_by_one), std::nullopt)
          << threads << " threads, " << cores << " cores";
    }
  }
  EXPECT_EQ(widest, 9);
}

TEST(StateOfADenseNetwork, IsRefusedForOtherDataAndAnotherActivation) {
  const auto trainer_of = [](Activation activation, std::uint32_t seed) {
    return Trainer(multi_layer_perceptron(test::random_classes<float>(64, 3, 2, seed),
                                          {.hidden = {4}, .activation = activation}),
                   Trace::constant(32), {.epochs = 1, .threads = 1});
  };
  Trainer trained = trainer_of(Activation::relu, 1);
  trained.fit();
  const State state = trained.state();
  Trainer same = trainer_of(Activation::relu, 1);
  same.load_state(state);
  EXPECT_EQ(test::difference_of(same, trained), std::nullopt);
  Trainer other = trainer_of(Activation::tanh, 1);
  EXPECT_THROW(other.load_state(state), Error);
  Trainer another = trainer_of(Activation::relu, 2);
  EXPECT_THROW(another.load_state(state), Error);
}

}  // namespace
}  // namespace rubato
