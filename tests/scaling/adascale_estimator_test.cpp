#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <rubato/numbers/adascale_estimator.hpp>
#include <rubato/numbers/rule.hpp>

#include "numbers/scaling/gradient_noise.hpp"
#include "numbers/scaling/rules.hpp"
#include "support/error_of.hpp"

namespace rubato {
namespace {

using Gradient = std::vector<double>;

double square(const Gradient& gradient) {
  return std::inner_product(gradient.begin(), gradient.end(), gradient.begin(), 0.0);
}

// What a step of these gradients measures.
GradientNorms norms_of(const std::vector<Gradient>& gradients) {
  Gradient mean(gradients.front().size());
  GradientNorms norms;
  const auto count = static_cast<double>(gradients.size());
  for (const Gradient& gradient : gradients) {
    norms.minibatch_square += square(gradient) / count;
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += gradient[i] / count;
  }
  norms.mean_square = square(mean);
  return norms;
}

AdaScaleEstimator after(const std::vector<Gradient>& gradients, double scale,
                        const AdaScaleOptions& options = {}) {
  AdaScaleEstimator estimator(options);
  const GradientNorms norms = norms_of(gradients);
  estimator.update({&norms, 1}, static_cast<std::int64_t>(gradients.size()), scale);
  return estimator;
}

// ../shared/reference/README.md, "Published gains".
TEST(AdaScale, HasThePublishedGains) {
  const std::vector<Gradient> orthogonal2{{1, 0}, {0, 1}};
  EXPECT_NEAR(after(orthogonal2, 2).gain(2), 2.0, 1e-12);
  const std::vector<Gradient> identical{{1, 1}, {1, 1}};
  const AdaScaleOptions fairscale{.smallest_variance = 1e-6};
  EXPECT_NEAR(after(identical, 2, fairscale).gain(2), 1.0000002499999376, 1e-15);
  EXPECT_NEAR(after(identical, 2).gain(2), 1, 1e-6) << "what are rounding errors has no gain";
  const std::vector<Gradient> orthogonal4{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
  for (const double scale : {4.0, 2.0, 4.0 / 3}) {
    EXPECT_NEAR(after(orthogonal4, scale).gain(scale), scale, 1e-12);
  }
}

TEST(AdaScale, GainIsBetweenOneAndTheScale) {
  for (const double scale : {1.0, 1.5, 3.0, 100.0}) {
    const AdaScaleEstimator estimator = after({{1, 2}, {2, 1}, {0, 1}}, scale);
    EXPECT_GE(estimator.gain(scale), 1);
    EXPECT_LE(estimator.gain(scale), scale);
  }
  EXPECT_EQ(after({{1, 2}, {2, 1}}, 1).gain(1), 1);
}

// Whatever the unit of the loss: also where gradients are small, as at the end of a fit.
TEST(AdaScale, GainsDoNotDependOnTheSizeOfTheGradients) {
  const std::vector<Gradient> gradients{{1, 2}, {2, 1}, {0, 1}};
  const auto scaled = [&](double factor) {
    std::vector<Gradient> all = gradients;
    for (Gradient& gradient : all) {
      for (double& value : gradient) value *= factor;
    }
    return all;
  };
  const double gain = after(gradients, 3).gain(3);
  EXPECT_GT(gain, 1.2);
  EXPECT_LT(gain, 2);
  for (const int exponent : {-300, -27, 60}) {
    EXPECT_EQ(after(scaled(std::ldexp(1, exponent)), 3).gain(3), gain) << exponent;
  }
  EXPECT_NEAR(after(scaled(1e-8), 3).gain(3), gain, 1e-12);
  EXPECT_NEAR(after(scaled(1e-8), 3, {.smallest_variance = 1e-6}).gain(3), 3, 1e-6)
      << "what a floor in the unit of the loss makes of it";
  // Pairs of steps do not, either.
  const auto of_pair = [](const std::vector<Gradient>& both) {
    const GradientNorms norms = norms_of(both);
    AdaScaleEstimator estimator;
    estimator.update_from_pair({&norms, 1}, 2);
    return estimator.gain(2);
  };
  EXPECT_EQ(of_pair({{std::ldexp(1, -27), 0}, {std::ldexp(1, -26), 0}}), of_pair({{1, 0}, {2, 0}}));
}

TEST(AdaScale, GradientsOfZeroSayNothing) {
  AdaScaleEstimator estimator = after({{0, 0}, {0, 0}}, 2);
  EXPECT_EQ(estimator.gain(2), 1);
  EXPECT_EQ(estimator.gain(2, 0), 1);
  EXPECT_EQ(estimator.gain(0.5), 0.5);
  estimator = after({{1, 2}, {2, 1}}, 2);
  const double gain = estimator.gain(2);
  const GradientNorms none;
  estimator.update({&none, 1}, 2, 2);
  EXPECT_NEAR(estimator.gain(2), gain, 1e-15);
}

TEST(AdaScale, RefusesASmallestVarianceThatIsNone) {
  for (const double wrong : {-1e-9, std::nan("")}) {
    EXPECT_THAT(error_of([&] { return AdaScaleEstimator({.smallest_variance = wrong}); }),
                testing::HasSubstr("accepted are values of at least 0"));
  }
}

TEST(AdaScale, OneMinibatchKeepsTheAverages) {
  AdaScaleEstimator estimator = after({{1, 2}, {2, 1}}, 2);
  const auto before = numbers_of(estimator);
  const GradientNorms one = norms_of({{7, 7}});
  estimator.update({&one, 1}, 1, 1);
  EXPECT_EQ(numbers_of(estimator), before);
  EXPECT_EQ(estimator.gain(1), 1);
}

// Two steps of one minibatch and scale 2 each: together a batch of scale 4.
TEST(AdaScale, EstimatesFromPairs) {
  const Gradient before{1, 2, 0};
  const Gradient now{0, 2, 1};
  const GradientNorms norms = norms_of({before, now});
  AdaScaleEstimator estimator;
  estimator.update_from_pair({&norms, 1}, 2);
  // |now - before|^2 / 2 is the variance of a minibatch; a batch of scale 1 is half of one.
  EXPECT_NEAR(estimator.variance(0), 2 * (2.0 / 2), 1e-12);
  EXPECT_NEAR(estimator.squared_gradient(0), (0.25 + 4 + 0.25) - 2.0 / 4, 1e-12);
  EXPECT_NEAR(estimator.gain(2), (2.0 + 4.0) / (2.0 / 2 + 4.0), 1e-12);
  // It weighs as one minibatch.
  const GradientNorms other = norms_of({now, now});
  estimator.update_from_pair({&other, 1}, 2);
  EXPECT_NEAR(estimator.squared_gradient(0), (0.999 * 0.001 * 4 + 0.001 * 5) / (1 - 0.999 * 0.999),
              1e-9);
}

TEST(AdaScaleRule, LearnsFromPairs) {
  AdaScaleRule rule;
  const GradientNorms norms = norms_of({{1, 0}, {0, 1}});
  const auto rates = [&](bool from_pair) {
    return rule.rates({.batch_size = 8,
                       .minibatch_size = 8,
                       .reference_batch_size = 4,
                       .base_learning_rate = 1,
                       .groups = {&norms, 1},
                       .from_pair = from_pair});
  };
  EXPECT_EQ(rates(false).gain, 1) << "of one minibatch nothing can be said";
  EXPECT_NEAR(rates(true).gain, 2, 1e-9) << "all noise";
}

TEST(AdaScale, KnowsNothingBeforeTheFirstMeasurement) {
  const AdaScaleEstimator estimator;
  EXPECT_FALSE(estimator.measured());
  EXPECT_EQ(estimator.gain(8), 1);
  EXPECT_EQ(estimator.gain(8, 0), 1);
  EXPECT_EQ(estimator.gain(0.5), 0.5);
}

TEST(AdaScale, SkipsAndCountsWhatIsNotFinite) {
  AdaScaleEstimator estimator = after({{1, 2}, {2, 1}}, 2);
  const double gain = estimator.gain(2);
  for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    for (const GradientNorms& norms : {GradientNorms{.minibatch_square = bad, .mean_square = 1},
                                       GradientNorms{.minibatch_square = 1, .mean_square = bad}}) {
      estimator.update({&norms, 1}, 2, 2);
    }
  }
  EXPECT_EQ(estimator.skipped(), 4);
  EXPECT_EQ(estimator.gain(2), gain);
  AdaScaleEstimator resumed;
  load_numbers(resumed, numbers_of(estimator), "AdaScale");
  EXPECT_EQ(resumed.skipped(), 4);
}

// Of two groups, of which the other one is good.
TEST(AdaScale, SkipsAStepWithOneGroupThatIsNotFinite) {
  AdaScaleEstimator estimator({}, 2);
  const GradientNorms good = norms_of({{1, 2}, {2, 1}});
  const std::vector<GradientNorms> both{good, good};
  estimator.update(both, 2, 2);
  const auto before = numbers_of(estimator);
  for (const std::size_t group : {0U, 1U}) {
    std::vector<GradientNorms> norms = both;
    norms[group].mean_square = std::numeric_limits<double>::infinity();
    estimator.update(norms, 2, 2);
    EXPECT_EQ(estimator.skipped(), static_cast<std::int64_t>(group) + 1);
    EXPECT_EQ(estimator.squared_gradient(0), before[2]);
    EXPECT_EQ(estimator.gain(2), estimator.gain(2, 0));
  }
}

TEST(AdaScale, SmoothingFollowsTheMinibatches) {
  EXPECT_DOUBLE_EQ(AdaScaleEstimator().smoothing(4), 0.996);
  EXPECT_DOUBLE_EQ(AdaScaleEstimator().smoothing(2000), 0);
  EXPECT_DOUBLE_EQ(AdaScaleEstimator({.smoothing = 0.5}).smoothing(4), 0.5);
  for (const double wrong : {-0.1, 1.0, std::nan("")}) {
    EXPECT_NE(error_of([&] { return AdaScaleEstimator({.smoothing = wrong}); }), "no error");
  }
}

TEST(AdaScale, RefusesAStateOfAnotherSize) {
  AdaScaleEstimator estimator;
  EXPECT_EQ(error_of([&] { load_numbers(estimator, std::vector<double>(3), "AdaScale"); }),
            "the state of AdaScale has 3 numbers; accepted: 12");
}

// The whole rule over a changing batch: the paper keeps the variance, fairscale rescales it.
TEST(AdaScaleRule, KeepsTheVarianceUnlessAsked) {
  const GradientNorms norms = norms_of({{1, 2}, {2, 1}, {0, 1}, {1, 1}});
  const auto variance_after_change = [&](std::string_view spec) {
    const auto rule = RuleChoice(spec).make();
    RuleInput input{.batch_size = 128,
                    .minibatch_size = 32,
                    .reference_batch_size = 32,
                    .base_learning_rate = 0.1,
                    .groups = {&norms, 1}};
    static_cast<void>(rule->rates(input));
    // One minibatch measures nothing, so that the change alone is seen.
    input.batch_size = 32;
    const Rates rates = rule->rates(input);
    EXPECT_EQ(rates.gain, 1);
    EXPECT_EQ(rates.learning_rate, 0.1);
    return dynamic_cast<const AdaScaleRule&>(*rule).estimator().variance(0);
  };
  const double kept = variance_after_change("adascale");
  EXPECT_DOUBLE_EQ(variance_after_change("adascale:rescale-variance=true"), 4 * kept);
}

// Where one of the minibatches has fewer samples, its norm is of another noise.
TEST(AdaScaleRule, LearnsNothingOfStepsWithAShortMinibatch) {
  const GradientNorms norms = norms_of({{1, 2}, {2, 1}, {0, 1}});
  const auto rule = RuleChoice("adascale").make();
  RuleInput input{.batch_size = 80,
                  .minibatch_size = 32,
                  .reference_batch_size = 32,
                  .base_learning_rate = 0.1,
                  .groups = {&norms, 1}};
  static_cast<void>(rule->rates(input));
  const auto& estimator = dynamic_cast<const AdaScaleRule&>(*rule).estimator();
  EXPECT_FALSE(estimator.measured());
  input.batch_size = 96;
  static_cast<void>(rule->rates(input));
  EXPECT_TRUE(estimator.measured());
}

TEST(AdaScaleRule, GivesEachGroupItsOwnGain) {
  const std::vector<GradientNorms> groups{norms_of({{1, 0}, {0, 1}}), norms_of({{1, 1}, {1, 1}})};
  const auto rule = RuleChoice("adascale").make();
  const Rates rates = rule->rates({.batch_size = 64,
                                   .minibatch_size = 32,
                                   .reference_batch_size = 32,
                                   .base_learning_rate = 0.1,
                                   .groups = groups});
  ASSERT_EQ(rates.group_factors.size(), 2U);
  EXPECT_NEAR(rates.group_factors[0], 2, 1e-9);
  EXPECT_NEAR(rates.group_factors[1], 1, 1e-6);
  EXPECT_EQ(rates.update_rate, 0.1);
  EXPECT_DOUBLE_EQ(rates.learning_rate, 0.1 * rates.gain);
  EXPECT_GT(rates.gain, 1);
  EXPECT_LT(rates.gain, 2);
  const auto other = RuleChoice("adascale").make();
  load_numbers(*other, numbers_of(*rule), "AdaScale");
  EXPECT_EQ(numbers_of(*other), numbers_of(*rule));
}

// Gradients g_i = G + noise: |G|^2 = 4, the variance of a minibatch of 8 samples is 2, so that
// tr(Sigma) = 16 and the noise scale is 4 samples.
TEST(NoiseScale, IsTheVarianceOfASampleOverTheSquaredGradient) {
  NoiseScale noise;
  EXPECT_FALSE(noise.value().has_value());
  const GradientNorms norms = norms_of({{3, 0}, {1, 0}, {3, 0}, {1, 0}});
  // Unbiased estimates: variance 4/3, signal 4 - 1/3.
  noise.update({&norms, 1}, 4, 8);
  EXPECT_NEAR(noise.value().value(), 8 * (4.0 / 3) / (4 - 1.0 / 3), 1e-12);
  NoiseScale other;
  load_numbers(other, numbers_of(noise), "AdaScale");
  EXPECT_EQ(other.value(), noise.value());
  // One minibatch says nothing.
  const GradientNorms one = norms_of({{9, 9}});
  noise.update({&one, 1}, 1, 8);
  EXPECT_EQ(other.value(), noise.value());
}

TEST(NoiseScale, LeavesOutWhatIsNotFinite) {
  NoiseScale noise;
  const std::vector<GradientNorms> good{norms_of({{3, 0}, {1, 0}}), norms_of({{2, 1}, {1, 2}})};
  noise.update(good, 2, 8);
  const auto before = numbers_of(noise);
  ASSERT_TRUE(noise.value().has_value());
  for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    for (const std::size_t group : {0U, 1U}) {
      for (const auto field : {&GradientNorms::minibatch_square, &GradientNorms::mean_square}) {
        std::vector<GradientNorms> norms = good;
        norms[group].*field = bad;
        noise.update(norms, 2, 8);
        EXPECT_EQ(numbers_of(noise), before) << bad << " in group " << group;
      }
    }
  }
}

TEST(AdaScaleReference, EveryGainAndAverage) {
  std::ifstream file(RUBATO_SHARED_DIR "/reference/adascale.json");
  if (!file) GTEST_SKIP() << "no " RUBATO_SHARED_DIR "/reference/adascale.json here";
  const auto runs = nlohmann::json::parse(file);
  ASSERT_FALSE(runs.empty());
  for (const auto& run : runs) {
    SCOPED_TRACE(run.at("name"));
    AdaScaleOptions options{.rescale_variance = true, .smallest_variance = 1e-6};
    if (!run.at("smoothing_argument").is_null()) options.smoothing = run.at("smoothing_argument");
    if (!run.at("debias_ewma").get<bool>()) options.averaging = Averaging::mean_first;
    const std::size_t groups = run.at("group_sizes").size();
    AdaScaleEstimator estimator(options, groups);
    double last_scale = 0;
    for (const auto& step : run.at("steps")) {
      const auto micro = step.at("micro_gradients").get<std::vector<std::vector<Gradient>>>();
      const double scale = step.at("scale");
      if (last_scale != 0 && scale != last_scale) estimator.change_scale(last_scale, scale);
      last_scale = scale;
      std::vector<GradientNorms> norms;
      for (std::size_t g = 0; g < groups; ++g) {
        std::vector<Gradient> of_group;
        for (const auto& gradients : micro) of_group.push_back(gradients[g]);
        norms.push_back(norms_of(of_group));
      }
      const auto minibatches = static_cast<std::int64_t>(micro.size());
      estimator.update(norms, minibatches, scale);
      EXPECT_NEAR(estimator.smoothing(minibatches), step.at("smoothing"), 1e-12);
      const double gain = step.at("gain");
      EXPECT_NEAR(estimator.gain(scale), gain, 1e-9 * gain);
      for (std::size_t g = 0; g < groups; ++g) {
        const double group_gain = step.at("gain_per_group")[g];
        const double signal = step.at("grad_sqr_avg")[g];
        const double variance = step.at("grad_var_avg")[g];
        EXPECT_NEAR(estimator.gain(scale, g), group_gain, 1e-9 * group_gain);
        EXPECT_NEAR(estimator.squared_gradient(g), signal, 1e-9 * signal);
        EXPECT_NEAR(estimator.variance(g), variance, 1e-9 * variance);
      }
    }
  }
}

}  // namespace
}  // namespace rubato
