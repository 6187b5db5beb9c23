// Everything that keeps a state, resumed after every step.

#include "scaling/resume.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/numbers/adascale_estimator.hpp>
#include <rubato/numbers/lr_schedule.hpp>
#include <rubato/numbers/rule.hpp>

#include "numbers/scaling/gradient_noise.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::expect_resumes;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kMinibatch = 32;

// What a step of a training looks like to a rule, of two groups and three layers.
struct Step {
  std::int64_t minibatches;
  std::array<GradientNorms, 2> groups;
  std::array<ParameterNorms, 3> layers;
  bool has_metric = true;

  // Some norms, which differ from the others.
  [[nodiscard]] std::span<const GradientNorms> metric_groups() const {
    return has_metric ? std::span(groups).first(2) : std::span<const GradientNorms>();
  }
};

// An elastic training: batches that grow and shrink, steps of one minibatch, gradients that
// overflow.
std::vector<Step> training() {
  std::vector<Step> steps;
  double x = 1;
  for (const std::int64_t minibatches : {4, 4, 1, 8, 8, 8, 2, 2, 1, 16, 16, 3, 3, 3, 3, 12}) {
    x = std::fmod(x * 1.7, 3) + 0.1;
    steps.push_back({.minibatches = minibatches,
                     .groups = {{{.minibatch_square = 3 * x, .mean_square = x},
                                 {.minibatch_square = 5 + x, .mean_square = 1 / x}}},
                     .layers = {{{.weight_square = x, .gradient_square = 2, .weight_decay = 0.01},
                                 {.weight_square = 1e-9, .gradient_square = x},
                                 {.weight_square = 1e9, .gradient_square = x}}}});
  }
  steps[0].has_metric = false;
  steps[4].groups[0].minibatch_square = kInfinity;
  steps[10].groups[1].mean_square = kInfinity;
  return steps;
}

std::vector<double> numbers_of(const Rates& rates) {
  std::vector<double> numbers{rates.learning_rate, rates.update_rate, rates.weight_decay_factor,
                              rates.gain};
  numbers.insert(numbers.end(), rates.group_factors.begin(), rates.group_factors.end());
  numbers.insert(numbers.end(), rates.layer_factors.begin(), rates.layer_factors.end());
  return numbers;
}

// Every rule with every mode that it has.
std::vector<std::string> all_rules() {
  return {"constant",
          "linear",
          "linear:ramp=3",
          "root",
          "root:ramp=2",
          "root-adam",
          "linear-momentum",
          "linear-momentum:ramp=4",
          "adascale",
          "adascale:smoothing=0.9",
          "adascale:smoothing=0.8,averaging=mean-first",
          "adascale:rescale-variance=true",
          "adascale:ramp=3,smoothing=0.7",
          "adascale:metric=optimizer,power=0.5",
          "adascale:linear-after=0.5,smoothing=0.5",
          "lbsgd:epochs=0.1",
          "lbsgd:warmup=power2,epochs=0.1,begin-epoch=0.01",
          "lbsgd:warmup=sqrt,epochs=2,updates-per-epoch=6",
          "lbsgd:warmup=lars",
          "lbsgd:epochs=0.1,ramp=3"};
}

TEST(Resume, RulesAfterEveryStep) {
  const std::vector<Step> steps = training();
  for (const std::string& rule : all_rules()) {
    SCOPED_TRACE(rule);
    expect_resumes(
        steps.size(), [&] { return RuleChoice(rule).make(); },
        [&](Rule& made, std::size_t i) {
          return numbers_of(made.rates({.batch_size = steps[i].minibatches * kMinibatch,
                                        .minibatch_size = kMinibatch,
                                        .reference_batch_size = 2 * kMinibatch,
                                        .base_learning_rate = 0.1,
                                        .epoch_size = 12'000,
                                        .groups = steps[i].groups,
                                        .metric_groups = steps[i].metric_groups(),
                                        .layers = steps[i].layers}));
        });
  }
}

TEST(Resume, EveryRuleIsAmongThem) {
  for (const std::string_view name : rule_names()) {
    EXPECT_THAT(all_rules(), Contains(StartsWith(std::string(name)))) << name;
  }
}

// Every schedule, alone and in company; plateau in all of its modes.
std::vector<std::string> all_schedules() {
  return {"constant:value=0.5",
          "step:every=2",
          "multi-step:at=3/7",
          "polynomial:total=10",
          "cosine:total=10,after=2",
          "cosine-restarts:first=3,mult=2",
          "exponential",
          "warmup:length=5",
          "warmup-cosine:warmup=3,total=12",
          "one-cycle:total=12",
          "plateau:patience=0,factor=0.5",
          "plateau:patience=1,factor=0.5,cooldown=3",
          "plateau:patience=1,factor=0.5,threshold=0.2,threshold-mode=abs,floor=0.2",
          "plateau:patience=1,factor=0.3,mode=max,cooldown=1",
          "warmup:length=3+plateau:patience=1,factor=0.5,cooldown=2+step:every=4",
          "plateau:patience=0,factor=0.9+plateau:patience=2,factor=0.5,mode=max"};
}

TEST(Resume, SchedulesAfterEveryEpoch) {
  const std::vector<double> metrics{2,   1.5, 1.5, 1.6, 1.5, 1.5,  1.4, 1.5, std::nan(""), 1.5,
                                    1.5, 1,   1.2, 1.2, 0.9, -0.1, 0,   -1,  -1,           -1.01};
  for (const std::string& schedule : all_schedules()) {
    SCOPED_TRACE(schedule);
    expect_resumes(
        metrics.size(), [&] { return ScheduleChoice(schedule).make({}); },
        [&](LrSchedule& made, std::size_t i) {
          made.observe(metrics[i]);
          return std::vector<double>{made.factor(static_cast<double>(i))};
        });
  }
}

TEST(Resume, EveryScheduleIsAmongThem) {
  for (const std::string_view name : lr_schedule_names()) {
    EXPECT_THAT(all_schedules(), Contains(StartsWith(std::string(name)))) << name;
  }
}

// The others would go on well from a state that has forgotten something if nothing ever came of it.
TEST(Resume, PlateausFallInThisTraining) {
  const auto schedule = ScheduleChoice("plateau:patience=1,factor=0.5,cooldown=3").make({});
  for (const double metric : {2, 2, 2}) schedule->observe(metric);
  EXPECT_EQ(schedule->factor(0), 0.5);
  const auto resumed = ScheduleChoice("plateau:patience=1,factor=0.5,cooldown=3").make({});
  load_numbers(*resumed, numbers_of(*schedule), "the schedule");
  // Three of cooldown and one of patience.
  for (int i = 0; i < 4; ++i) resumed->observe(2);
  EXPECT_EQ(resumed->factor(0), 0.5);
  resumed->observe(2);
  EXPECT_EQ(resumed->factor(0), 0.25);
}

TEST(Resume, AdaScaleAfterEveryStep) {
  const std::vector<Step> steps = training();
  for (const AdaScaleOptions& options :
       {AdaScaleOptions{}, AdaScaleOptions{.smoothing = 0.9},
        AdaScaleOptions{.smoothing = 0.7, .averaging = Averaging::mean_first},
        AdaScaleOptions{.rescale_variance = true}}) {
    expect_resumes(
        steps.size(), [&] { return std::make_unique<AdaScaleEstimator>(options, 2); },
        [&](AdaScaleEstimator& estimator, std::size_t i) {
          const auto scale = static_cast<double>(steps[i].minibatches) / 2;
          if (i > 0) {
            estimator.change_scale(static_cast<double>(steps[i - 1].minibatches) / 2, scale);
          }
          estimator.update(steps[i].groups, steps[i].minibatches, scale);
          return std::vector<double>{
              estimator.gain(scale),           estimator.gain(scale, 0),
              estimator.gain(scale, 1),        estimator.variance(1),
              estimator.squared_gradient(0),   static_cast<double>(estimator.skipped()),
              estimator.measured() ? 1.0 : 0.0};
        });
  }
}

TEST(Resume, NoiseScaleAfterEveryStep) {
  const std::vector<Step> steps = training();
  expect_resumes(
      steps.size(), [] { return std::make_unique<NoiseScale>(0.8); },
      [&](NoiseScale& noise, std::size_t i) {
        noise.update(steps[i].groups, steps[i].minibatches, kMinibatch);
        return std::vector<double>{noise.value().value_or(-1)};
      });
}

}  // namespace
}  // namespace rubato
