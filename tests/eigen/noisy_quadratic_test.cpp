#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/eigen.hpp>

#include "eigen/support.hpp"
#include "loop/recipe/models.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

QuadraticOptions parse_quadratic(std::string_view text) {
  return std::get<QuadraticOptions>(parse_model(text).options);
}

TEST(NoisyQuadratic, HasEigenvaluesByAPowerLaw) {
  const std::vector<double> paper = eigenvalues_of({.dim = 1'000});
  for (std::size_t i = 0; i < paper.size(); ++i) {
    EXPECT_NEAR(paper[i], 1 / static_cast<double>(i + 1), 1e-15) << i;
  }
  const std::vector<double> squares = eigenvalues_of({.dim = 100, .condition = 10'000});
  EXPECT_EQ(squares.front(), 1);
  EXPECT_NEAR(squares[9], 1e-2, 1e-15);
  EXPECT_NEAR(squares.back(), 1e-4, 1e-16);
  EXPECT_THAT(eigenvalues_of({.dim = 3, .condition = 1}), ElementsAre(1, 1, 1));
  EXPECT_THAT(eigenvalues_of({.dim = 1}), ElementsAre(1));
}

TEST(NoisyQuadratic, IsReadFromText) {
  const QuadraticOptions options =
      parse_quadratic("quadratic:dim=20,condition=7.5,noise=0.25,samples=300");
  EXPECT_EQ(options.dim, 20);
  EXPECT_EQ(options.condition, 7.5);
  EXPECT_EQ(options.noise, 0.25);
  EXPECT_EQ(options.samples, 300);
  const QuadraticOptions usual = parse_quadratic("quadratic");
  EXPECT_EQ(usual.dim, QuadraticOptions().dim);
  EXPECT_EQ(usual.condition, std::nullopt);
}

TEST(NoisyQuadratic, SaysWhatIsAccepted) {
  const auto error = [](const std::string& text) {
    return error_of([&] { return parse_quadratic(text); });
  };
  EXPECT_THAT(error("quadratic:dim=0"), HasSubstr("dim"));
  EXPECT_THAT(error("quadratic:condition=0.5"), HasSubstr("a number of at least 1"));
  EXPECT_THAT(error("quadratic:noise=-1"), HasSubstr("a number of at least 0"));
  EXPECT_THAT(error("quadratic:samples=0"), HasSubstr("samples"));
  EXPECT_THAT(error("quadratic:dims=3"), HasSubstr("did you mean 'dim'"));
  EXPECT_THAT(error("quadratic:dim=1,condition=2"), HasSubstr("accepted there: 1"));
  EXPECT_THAT(error_of([] { return noisy_quadratic<float>({.dim = -1}); }),
              HasSubstr("quadratic: dim -1; accepted: 1 to"));
  EXPECT_THAT(error_of([] { return noisy_quadratic<float>({.noise = NAN}); }),
              HasSubstr("a number of at least 0"));
}

TEST(NoisyQuadratic, HasTheGradientOfItsLoss) {
  const auto quadratic = noisy_quadratic<double>({.dim = 9, .condition = 5});
  const StreamKey key{.seed = 3};
  const auto samples = test::first_samples(4);
  for (double& value : quadratic->parameters()[0].values<double>()) value += value / 3;
  const auto computed = test::compute(*quadratic, samples, key);
  for (std::size_t i = 0; i < 9; ++i) {
    double& value = quadratic->flat_parameters()[i];
    const double before = value;
    value = before + 1e-4;
    const double above = test::compute(*quadratic, samples, key).loss;
    value = before - 1e-4;
    const double below = test::compute(*quadratic, samples, key).loss;
    value = before;
    EXPECT_NEAR(computed.gradient[i], (above - below) / 2e-4, 1e-10) << i;
  }
}

// Mean and covariance of many minibatches' gradients.
TEST(NoisyQuadratic, HasNoiseOfTheHessiansShape) {
  constexpr std::int64_t kDraws = 20'000;
  constexpr double kNoise = 3;
  const QuadraticOptions options{.dim = 4, .condition = 8, .noise = kNoise};
  const auto quadratic = noisy_quadratic<double>(options);
  const auto evaluator = quadratic->make_evaluator();
  const std::vector<double> eigenvalues = eigenvalues_of(options);
  std::vector<double> sum(4);
  std::vector<double> products(16);
  for (std::int64_t draw = 0; draw < kDraws; ++draw) {
    const auto computed =
        test::compute(*quadratic, *evaluator, test::first_samples(8), {.minibatch = draw});
    for (std::size_t i = 0; i < 4; ++i) {
      sum[i] += computed.gradient[i];
      for (std::size_t j = 0; j < 4; ++j) {
        products[4 * i + j] +=
            (computed.gradient[i] - eigenvalues[i]) * (computed.gradient[j] - eigenvalues[j]);
      }
    }
  }
  for (std::size_t i = 0; i < 4; ++i) {
    const double variance = kNoise * eigenvalues[i] / 8;
    EXPECT_NEAR(sum[i] / kDraws, eigenvalues[i], 5 * std::sqrt(variance / kDraws));
    for (std::size_t j = 0; j < 4; ++j) {
      const double scale = kNoise * std::sqrt(eigenvalues[i] * eigenvalues[j]) / 8;
      EXPECT_NEAR(products[4 * i + j] / kDraws, i == j ? variance : 0,
                  5 * scale * std::sqrt(2.0 / kDraws));
    }
  }
}

// 60 steps of plain SGD.
constexpr std::int64_t kQuadraticSteps = 60;
constexpr double kQuadraticRate = 0.3;
constexpr std::int64_t kQuadraticBatch = 16;

double trained_loss(const QuadraticOptions& options, std::uint64_t seed) {
  Trainer trainer(noisy_quadratic<double>(options), Trace::constant(kQuadraticBatch),
                  {.epochs = 1,
                   .minibatch_size = 4,
                   .learning_rate = kQuadraticRate,
                   .reference_batch_size = kQuadraticBatch,
                   .rule = "constant",
                   .optimizer = {.momentum = 0},
                   .seed = seed,
                   .cores = 3,
                   .threads = 1});
  return trainer.fit().final_test->loss;
}

// Zhang et al. 2019, theorem 1 for plain SGD.
double expected_loss(const QuadraticOptions& options) {
  double loss = 0;
  for (const double h : eigenvalues_of(options)) {
    const double decay = std::pow(1 - kQuadraticRate * h, 2);
    const double left = std::pow(decay, kQuadraticSteps);
    const double noise = kQuadraticRate * kQuadraticRate * options.noise * h / kQuadraticBatch;
    loss += 0.5 * h * (left + noise * (1 - left) / (1 - decay));
  }
  return loss;
}

TEST(NoisyQuadratic, TrainsToItsClosedForm) {
  QuadraticOptions options{
      .dim = 50, .condition = 100, .noise = 0, .samples = kQuadraticSteps * kQuadraticBatch};
  EXPECT_NEAR(trained_loss(options, 1), expected_loss(options), 1e-12);
  options.noise = 20;
  constexpr int kRuns = 200;
  double sum = 0;
  double squares = 0;
  for (int run = 0; run < kRuns; ++run) {
    const double loss = trained_loss(options, static_cast<std::uint64_t>(run));
    sum += loss;
    squares += loss * loss;
  }
  const double mean = sum / kRuns;
  const double error = std::sqrt((squares / kRuns - mean * mean) / kRuns);
  EXPECT_NEAR(mean, expected_loss(options), 4 * error);
  EXPECT_LT(error, expected_loss(options) / 20);
}

}  // namespace
}  // namespace rubato
