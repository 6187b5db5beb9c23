// The squares of minibatches' gradients, as an optimizer gets them from a step.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/eigen.hpp>
#include <rubato/testing.hpp>

#include "eigen/support.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::trace_of;

constexpr std::size_t kParameters = 3;

// The gradient of a minibatch, and its part of the step.
struct Computed {
  double weight = 0;
  std::vector<double> gradient;
};

// Everything that is told of one step.
struct Told {
  std::mutex mutex;
  std::vector<Computed> minibatches;
  std::vector<double> mean;
  std::vector<double> mean_square;
};

// Distances to ten places in each dimension, in which a sample has the weight of its index or none.
FunctionParts<double> weighted_distances(Told& told, bool weighted) {
  FunctionParts<double> parts{.initial = {1, -2, 0.5}, .samples = 10};
  const auto weight_of = [](std::span<const std::int64_t> samples) {
    double sum = 0;
    for (const std::int64_t sample : samples) sum += static_cast<double>(sample);
    return sum;
  };
  if (weighted) parts.weight = weight_of;
  parts.value_and_gradient = [&told, weighted, weight_of](std::span<const double> at,
                                                          std::span<const std::int64_t> samples,
                                                          std::span<double> gradient) {
    const auto count = static_cast<double>(samples.size());
    double loss = 0;
    for (const std::int64_t sample : samples) {
      const auto place = static_cast<double>(sample);
      const double part = weighted ? place : 1 / count;
      for (std::size_t i = 0; i < at.size(); ++i) {
        const double apart = at[i] - place * place / static_cast<double>(10 + i);
        loss += part * apart * apart / 2;
        gradient[i] += part * apart;
      }
    }
    // The gradient of the mean, by which this minibatch counts for its weight.
    const double weight = weighted ? weight_of(samples) : count;
    const double whole = weighted && weight > 0 ? weight : 1;
    Computed computed{.weight = weight, .gradient = {gradient.begin(), gradient.end()}};
    for (double& value : computed.gradient) value /= whole;
    const std::scoped_lock lock(told.mutex);
    told.minibatches.push_back(std::move(computed));
    return loss;
  };
  return parts;
}

// Keeps what it is told, and moves nothing.
class Listening final : public FlatOptimizer<double> {
 public:
  explicit Listening(Told& told) : told_(told) {}
  void step(const Update<double>& update, Workers& /*workers*/) override {
    told_.mean.assign(update.gradient_sum.begin(), update.gradient_sum.end());
    told_.mean_square.assign(update.square_sum.begin(), update.square_sum.end());
    for (double& value : told_.mean) value *= update.gradient_factor;
    for (double& value : told_.mean_square) value *= update.square_factor;
  }
  void visit_state(StateVisitor& /*state*/) override {}
  bool needs_minibatch_squares() const override { return true; }

 private:
  Told& told_;
};

std::unique_ptr<Told> told_of(const TrainOptions& change, bool weighted) {
  auto told = std::make_unique<Told>();
  TrainOptions options = change;
  options.epochs = 1;
  options.remainder = Remainder::carry;
  options.own_optimizer.of_double = [&](const OptimizerParts&) {
    return std::make_unique<Listening>(*told);
  };
  Trainer trainer(function_objective(weighted_distances(*told, weighted)), trace_of({12}), options);
  // What computes a minibatch on trial is not told.
  told->minibatches.clear();
  trainer.fit();
  return told;
}

TEST(SquaresOfMinibatches, AreMeansWeightedLikeTheGradients) {
  for (const bool weighted : {false, true}) {
    for (const std::int64_t minibatch : {1, 2, 4}) {
      for (const std::optional<double> norm : {std::optional<double>(), std::optional(0.5)}) {
        SCOPED_TRACE(testing::Message() << weighted << minibatch << norm.has_value());
        const auto told = told_of(
            {.minibatch_size = minibatch, .clip_norm = norm, .cores = 2, .threads = 2}, weighted);
        ASSERT_EQ(told->minibatches.size(),
                  static_cast<std::size_t>((10 + minibatch - 1) / minibatch));
        double weight = 0;
        std::vector<double> mean(kParameters);
        std::vector<double> square(kParameters);
        for (const Computed& of : told->minibatches) {
          weight += of.weight;
          for (std::size_t i = 0; i < kParameters; ++i) {
            mean[i] += of.weight * of.gradient[i];
            square[i] += of.weight * of.gradient[i] * of.gradient[i];
          }
        }
        double length = 0;
        for (double& value : mean) {
          value /= weight;
          length += value * value;
        }
        const double factor = norm ? *norm / (std::sqrt(length) + 1e-6) : 1;
        for (double& value : mean) value *= factor;
        for (double& value : square) value *= factor * factor / weight;
        EXPECT_THAT(told->mean, Pointwise(DoubleNear(1e-12), mean));
        EXPECT_THAT(told->mean_square, Pointwise(DoubleNear(1e-12), square));
      }
    }
  }
}

std::string refusal_of(const std::function<void(TrainOptions&)>& change) {
  TrainOptions options{.minibatch_size = 4,
                       .optimizer = parse_optimizer("adam:second-moment=minibatch", {})};
  change(options);
  return error_of([&] { Trainer(test::tiny_objective(), trace_of({8}), options); });
}

TEST(SquaresOfMinibatches, AreRefusedWhereTheyWouldNotBeThoseOfTheGradientApplied) {
  EXPECT_EQ(refusal_of([](TrainOptions& options) { options.clip_norm = 1; }), "no error");
  EXPECT_EQ(refusal_of([](TrainOptions& options) { options.clip_value = 0.5; }),
            "clip_value: the squares of minibatches' gradients are known as a sum; accepted: "
            "clipping by norm, or second-moment=mean");
  EXPECT_EQ(
      refusal_of(
          [](TrainOptions& options) { options.gradient_transforms = {gaussian_noise(0.1)}; }),
      "transform: the squares of minibatches' gradients are known as a sum; accepted: clipping "
      "by norm, or second-moment=mean");
  EXPECT_THAT(refusal_of([](TrainOptions& options) {
                options.adjustments.on_batch_change.squares = Treatment::rescale;
              }),
              HasSubstr("which do not depend on the batch"));
}

// A square may overflow where its gradient does not.
TEST(SquaresOfMinibatches, HaveToBeFinite) {
  const auto steps_of = [](SecondMoment moment) {
    FunctionParts<float> parts{
        .initial = {1},
        .samples = 8,
        .value_and_gradient = [](std::span<const float>, std::span<const std::int64_t>,
                                 std::span<float> gradient) {
          gradient[0] = 1e20F;
          return 1.0;
        }};
    Trainer trainer(function_objective(std::move(parts)), trace_of({4}),
                    {.epochs = 1,
                     .minibatch_size = 2,
                     .optimizer = {.method = AdamOptions{.second_moment = moment}}});
    const std::string error = error_of([&] { trainer.fit(); });
    return error == "no error" ? std::to_string(trainer.result().steps) : error;
  };
  EXPECT_EQ(steps_of(SecondMoment::mean), "2");
  EXPECT_THAT(steps_of(SecondMoment::minibatch), HasSubstr("the gradient became infinite or NaN"));
}

// A dense network sums the gradients of several minibatches in one pass, which has no squares.
TEST(SquaresOfMinibatches, AreTakenFromOneMinibatchAtATime) {
  const auto at_once = [](SecondMoment moment) {
    const auto data = test::random_classes<float>(64, 5, 3, /*seed=*/1);
    return Trainer(
               softmax_regression(data), trace_of({32}),
               {.minibatch_size = 4, .optimizer = {.method = AdamOptions{.second_moment = moment}}})
        .minibatches_at_once();
  };
  EXPECT_GT(at_once(SecondMoment::mean), 1);
  EXPECT_EQ(at_once(SecondMoment::minibatch), 1);
}

// The parameters of a quadratic that stand still: the gradient of a minibatch is normal, with the
// eigenvalue as its mean and noise x eigenvalue / samples as its variance.
struct MeanSquares {
  std::vector<double> square;

  // The mean over the parameters of v, in units of its expectation over minibatches.
  [[nodiscard]] double relative(const QuadraticOptions& options, double minibatch) const {
    const std::vector<double> eigenvalues = eigenvalues_of(options);
    double sum = 0;
    for (std::size_t i = 0; i < square.size(); ++i) {
      sum += square[i] / (eigenvalues[i] * (eigenvalues[i] + options.noise / minibatch));
    }
    return sum / static_cast<double>(square.size());
  }
};

constexpr double kBeta2 = 0.9;
constexpr std::int64_t kMinibatch = 32;
constexpr std::int64_t kSteps = 50;

MeanSquares mean_squares_of(const QuadraticOptions& options, SecondMoment moment,
                            std::int64_t batch) {
  QuadraticOptions of_steps = options;
  of_steps.samples = kSteps * batch;
  Trainer trainer(noisy_quadratic<double>(of_steps), Trace::constant(batch),
                  {.epochs = 1,
                   .minibatch_size = kMinibatch,
                   .learning_rate = 1e-300,
                   .optimizer = {.method = AdamOptions{.beta2 = kBeta2, .second_moment = moment}}});
  trainer.fit();
  const auto values = trainer.state().values<double>("optimizer.adam.square");
  MeanSquares found{.square = {values.begin(), values.end()}};
  found.square.resize(static_cast<std::size_t>(options.dim));
  const double kept = std::pow(kBeta2, static_cast<double>(kSteps));
  for (double& of : found.square) of /= 1 - kept;
  return found;
}

// The standard error of relative(): the square of a normal number of mean s and variance n has the
// variance 2 n^2 + 4 s^2 n, and v is a weighted mean of steps, each a mean of minibatches.
double standard_error(const QuadraticOptions& options, double minibatches) {
  double weights = 0;
  double of_weights = 0;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const double weight = std::pow(kBeta2, static_cast<double>(step));
    weights += weight;
    of_weights += weight * weight;
  }
  double variance = 0;
  for (const double eigenvalue : eigenvalues_of(options)) {
    const double noise = options.noise * eigenvalue / static_cast<double>(kMinibatch);
    const double square = eigenvalue * eigenvalue;
    variance += (2 * noise * noise + 4 * square * noise) / ((square + noise) * (square + noise));
  }
  const auto dim = static_cast<double>(options.dim);
  return std::sqrt(variance * of_weights / (weights * weights) / minibatches) / dim;
}

TEST(SecondMoment, OfMinibatchesDoesNotDependOnTheBatch) {
  const QuadraticOptions options{.dim = 1000, .condition = 50, .noise = 20};
  const auto relative = [&](SecondMoment moment, std::int64_t batch) {
    return mean_squares_of(options, moment, batch).relative(options, kMinibatch);
  };
  const double error_64 = standard_error(options, 2);
  const double error_1024 = standard_error(options, 32);
  EXPECT_LT(error_64, 0.01);
  const double at_64 = relative(SecondMoment::minibatch, 64);
  const double at_1024 = relative(SecondMoment::minibatch, 1024);
  EXPECT_NEAR(at_64, 1, 3 * error_64);
  EXPECT_NEAR(at_1024, 1, 3 * error_1024);
  EXPECT_NEAR(at_64, at_1024, 3 * std::hypot(error_64, error_1024));
  // The square of the mean has the noise of the batch, which is a fraction of it.
  const double of_mean_64 = relative(SecondMoment::mean, 64);
  const double of_mean_1024 = relative(SecondMoment::mean, 1024);
  EXPECT_LT(of_mean_64, 1 - 20 * error_64);
  EXPECT_LT(of_mean_1024, of_mean_64 - 20 * error_64);
}

}  // namespace
}  // namespace rubato
