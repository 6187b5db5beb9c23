#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include <rubato/libtorch/adascale.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using nlohmann::json;

at::Tensor double_tensor(const std::vector<double>& values) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kDouble);
  std::copy(values.begin(), values.end(), tensor.data_ptr<double>());
  return tensor;
}

at::Tensor parameter_of(const std::vector<double>& values) {
  return double_tensor(values).requires_grad_();
}

// A backward pass with that gradient.
void backward(const at::Tensor& parameter, const at::Tensor& gradient) {
  (parameter * gradient).sum().backward();
}

// ../shared/reference/adascale.json: fairscale's class, fed with gradients.
TEST(AdaScaleReference, EveryStepOfTheLoop) {
  std::ifstream file(RUBATO_SHARED_DIR "/reference/adascale.json");
  if (!file) GTEST_SKIP() << "no " RUBATO_SHARED_DIR "/reference/adascale.json here";
  const json runs = json::parse(file);
  ASSERT_FALSE(runs.empty());
  for (const json& run : runs) {
    SCOPED_TRACE(run.at("name"));
    std::vector<at::Tensor> parameters;
    std::vector<torch::optim::OptimizerParamGroup> groups;
    for (const json& initial : run.at("initial_params")) {
      parameters.push_back(parameter_of(initial.get<std::vector<double>>()));
      groups.emplace_back(std::vector<at::Tensor>{parameters.back()});
    }
    torch::optim::SGD sgd(
        groups, torch::optim::SGDOptions(run.at("lr").get<double>()).momentum(run.at("momentum")));
    const bool scaled = run.at("is_scaled_loss");
    AdaScaleLoopOptions options{
        .num_gradients_to_accumulate = run.at("steps").at(0).at("accumulate"),
        .is_scaled_loss = scaled,
        .debias_ewma = run.at("debias_ewma")};
    if (!run.at("scale_argument").is_null()) options.scale = run.at("scale_argument");
    if (!run.at("smoothing_argument").is_null()) options.smoothing = run.at("smoothing_argument");
    AdaScale adascale(sgd, options);

    for (const json& step : run.at("steps")) {
      const std::int64_t accumulate = step.at("accumulate");
      if (!step.at("set_scale").is_null()) {
        adascale.set_scale(step.at("set_scale"), /*update_estimate=*/true);
        adascale.set_num_gradients_to_accumulate(accumulate);
      }
      adascale.zero_grad();
      for (const json& micro : step.at("micro_gradients")) {
        at::Tensor loss = at::zeros({}, at::kDouble);
        for (std::size_t g = 0; g < parameters.size(); ++g) {
          loss = loss + (parameters[g] * double_tensor(micro.at(g))).sum();
        }
        (scaled ? loss / static_cast<double>(accumulate) : loss).backward();
      }
      adascale.step();
      const double gain = step.at("gain");
      EXPECT_NEAR(adascale.gain(), gain, 1e-9 * gain);
      EXPECT_DOUBLE_EQ(adascale.scale(), step.at("scale"));
      EXPECT_NEAR(adascale.smoothing(), step.at("smoothing").get<double>(), 1e-12);
      for (std::size_t g = 0; g < parameters.size(); ++g) {
        const double of_group = step.at("gain_per_group").at(g);
        EXPECT_NEAR(adascale.gain(g), of_group, 1e-9 * of_group);
        EXPECT_TRUE(at::allclose(parameters[g].detach(),
                                 double_tensor(step.at("params_after").at(g)),
                                 /*rtol=*/1e-9, /*atol=*/1e-12));
        EXPECT_EQ(sgd.param_groups()[g].options().get_lr(), step.at("lr_after_step").at(g));
      }
    }
  }
}

// fairscale's own tests.
class AdaScaleLoop : public testing::Test {
 protected:
  // A step of orthogonal gradients, or of identical ones.
  void step(AdaScale& adascale, const std::vector<std::vector<double>>& gradients) {
    adascale.zero_grad();
    for (const auto& gradient : gradients) backward(parameter_, double_tensor(gradient));
    // The gain is there before the step, and the step changes nothing in it.
    const double gain = adascale.gain();
    adascale.step();
    EXPECT_EQ(adascale.gain(), gain);
  }

  at::Tensor parameter_ = parameter_of({1, 2, 3, 4});
  torch::optim::SGD sgd_{{parameter_}, torch::optim::SGDOptions(0.1)};
  std::vector<std::vector<double>> orthogonal_{
      {1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
  std::vector<std::vector<double>> identical_{{1, 1, 0, 0}, {1, 1, 0, 0}};
};

TEST_F(AdaScaleLoop, HasThePublishedGains) {
  for (const double scale : {4.0, 2.0, 4.0 / 3}) {
    AdaScale adascale(sgd_,
                      {.num_gradients_to_accumulate = 4, .scale = scale, .is_scaled_loss = false});
    EXPECT_EQ(adascale.gain(), 1);
    step(adascale, orthogonal_);
    EXPECT_NEAR(adascale.gain(), scale, 1e-12);
  }
  AdaScale adascale(sgd_, {.num_gradients_to_accumulate = 2, .is_scaled_loss = false});
  step(adascale, identical_);
  EXPECT_NEAR(adascale.gain(), 1.0000002499999376, 1e-14);
}

// After scale 2 each of 3, 6 and 9, with identical gradients of losses divided by it. Published for
// float32.
TEST_F(AdaScaleLoop, HasThePublishedGainsAfterChangesOfScale) {
  for (const auto& [accumulate, gain] : std::vector<std::pair<int, double>>{
           {3, 2.141385737279438}, {6, 2.9927880097754036}, {9, 3.4461759591877312}}) {
    AdaScale adascale(sgd_, {.num_gradients_to_accumulate = 2, .is_scaled_loss = false});
    step(adascale, {{1, 1, 0, 0}, {0, 0, 1, 1}});
    EXPECT_NEAR(adascale.gain(), 2, 1e-12);
    adascale.set_scale(accumulate, /*update_estimate=*/true);
    adascale.set_num_gradients_to_accumulate(accumulate);
    step(adascale, std::vector<std::vector<double>>(static_cast<std::size_t>(accumulate),
                                                    {1.0 / accumulate, 1.0 / accumulate, 0, 0}));
    EXPECT_NEAR(adascale.gain(), gain, 1e-7 * gain) << accumulate;
  }
}

TEST_F(AdaScaleLoop, GainsNothingFromAccumulatedLosses) {
  AdaScale adascale(sgd_, {.num_gradients_to_accumulate = 4, .is_scaled_loss = false});
  at::Tensor loss = at::zeros({}, at::kDouble);
  for (const auto& gradient : orthogonal_)
    loss = loss + (parameter_ * double_tensor(gradient)).sum();
  loss.backward();
  EXPECT_EQ(adascale.gain(), 1);
  EXPECT_EQ(error_of([&] { adascale.step(); }), "AdaScale: step() after 1 of 4 backward passes");
}

TEST_F(AdaScaleLoop, RestoresTheLearningRateAndWorksAroundAnyOptimizer) {
  const at::Tensor parameter = parameter_of({1, 2, 3, 4});
  torch::optim::Adam adam({parameter}, torch::optim::AdamOptions(0.01));
  AdaScale adascale(adam, {.num_gradients_to_accumulate = 4, .is_scaled_loss = false});
  for (const auto& gradient : orthogonal_) backward(parameter, double_tensor(gradient));
  adascale.step();
  EXPECT_EQ(adam.param_groups()[0].options().get_lr(), 0.01);
  // Adam's first step is the rate itself: 0.01 times a gain of 4.
  EXPECT_TRUE(at::allclose(parameter.detach(), double_tensor({0.96, 1.96, 2.96, 3.96}), 1e-6, 0));
}

TEST_F(AdaScaleLoop, SaysWhatIsMisuse) {
  const auto make = [&](const AdaScaleLoopOptions& options) {
    return error_of([&] { const AdaScale adascale(sgd_, options); });
  };
  EXPECT_THAT(make({}), HasSubstr("at least two gradients in a step"));
  EXPECT_THAT(make({.world_size = 0}), HasSubstr("both are at least 1"));
  EXPECT_THAT(make({.world_size = 2}), HasSubstr("needs all_reduce_sum"));
  EXPECT_THAT(make({.num_gradients_to_accumulate = 2, .scale = 0}), HasSubstr("scale 0"));
  EXPECT_THAT(make({.num_gradients_to_accumulate = 2, .smoothing = 1}), HasSubstr("smoothing 1"));

  AdaScale adascale(sgd_, {.num_gradients_to_accumulate = 2, .is_scaled_loss = false});
  EXPECT_EQ(error_of([&] { adascale.step(); }), "AdaScale: step() after 0 of 2 backward passes");
  const at::Tensor gradient = double_tensor({1, 0, 0, 0});
  backward(parameter_, gradient);
  EXPECT_EQ(error_of([&] { adascale.step(); }), "AdaScale: step() after 1 of 2 backward passes");
  EXPECT_THAT(error_of([&] { adascale.set_scale(3); }),
              HasSubstr("set_scale() in the middle of an accumulation, after 1 of 2"));
  EXPECT_THAT(error_of([&] { adascale.set_num_gradients_to_accumulate(3); }),
              HasSubstr("in the middle of an accumulation"));
  EXPECT_THAT(error_of([&] { adascale.load_state_dict(""); }), HasSubstr("in the middle"));
  backward(parameter_, gradient);
  EXPECT_THAT(error_of([&] { backward(parameter_, gradient); }),
              HasSubstr("more than 2 backward passes without a step"));
  adascale.step();
  EXPECT_THAT(error_of([&] { adascale.set_scale(-1); }), HasSubstr("scale -1"));
  EXPECT_THAT(error_of([&] { adascale.set_num_gradients_to_accumulate(1); }),
              HasSubstr("at least two gradients"));
}

// As loops clip: between the last backward pass and step().
TEST_F(AdaScaleLoop, MeasuresBeforeGradientsAreClipped) {
  const auto gain_with = [&](bool clipped) {
    AdaScale adascale(sgd_, {.num_gradients_to_accumulate = 4});
    for (const auto& gradient :
         {std::vector<double>{3, 4, 0, 0}, {4, 3, 0, 0}, {3, 3, 1, 0}, {4, 4, 0, 1}}) {
      ((parameter_ * double_tensor(gradient)).sum() / 4).backward();
    }
    if (clipped) {
      const at::NoGradGuard no_grad;
      parameter_.mutable_grad().mul_(1e-3);
    }
    adascale.step();
    adascale.zero_grad();
    return adascale.gain();
  };
  const double gain = gain_with(false);
  EXPECT_GT(gain, 1.01);
  EXPECT_LT(gain, 1.2);
  EXPECT_EQ(gain_with(true), gain);
}

// Losses of parts of a model, each with a backward pass of its own.
TEST_F(AdaScaleLoop, MeasuresBehindTheLastOfSeveralPassesForAMinibatch) {
  const at::Tensor other = parameter_of({5, 6});
  torch::optim::SGD both({parameter_, other}, torch::optim::SGDOptions(0.1));
  AdaScale apart(both, {.num_gradients_to_accumulate = 2, .is_scaled_loss = false});
  const std::vector<std::vector<double>> of_other{{1, 0}, {0, 2}};
  for (std::size_t i = 0; i < 2; ++i) {
    backward(parameter_, double_tensor(orthogonal_[i]));
    // Asked too early, it does not keep what it was then.
    EXPECT_GE(apart.gain(), 1);
    backward(other, double_tensor(of_other[i]));
  }
  // Four orthogonal gradients whose squares are 1, 1, 1 and 4.
  EXPECT_NEAR(apart.gain(), 2, 1e-12);
  EXPECT_NEAR(apart.estimator().variance(0), 2 * (7.0 / 2 - 7.0 / 4), 1e-12);
}

TEST_F(AdaScaleLoop, DropsAnAccumulation) {
  AdaScale adascale(sgd_, {.num_gradients_to_accumulate = 2, .is_scaled_loss = false});
  step(adascale, {{1, 2, 0, 0}, {2, 1, 0, 0}});
  const double gain = adascale.gain();
  const at::Tensor before = parameter_.detach().clone();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const bool asked : {false, true}) {
    for (const std::size_t passes : {1U, 2U}) {
      for (const double value : {7.0, kInfinity}) {
        for (std::size_t i = 0; i < passes; ++i) {
          backward(parameter_, double_tensor({value, static_cast<double>(i), 0, 0}));
        }
        if (asked && passes == 2 && value != kInfinity) {
          EXPECT_NE(adascale.gain(), gain);
        }
        adascale.zero_grad();
        EXPECT_EQ(adascale.gain(), gain) << "nothing remains of it";
        EXPECT_EQ(adascale.estimator().skipped(), 0);
        EXPECT_FALSE(parameter_.grad().defined() && parameter_.grad().ne(0).any().item<bool>());
      }
    }
  }
  EXPECT_TRUE(at::equal(parameter_.detach(), before));
  EXPECT_EQ(error_of([&] { adascale.step(); }), "AdaScale: step() after 0 of 2 backward passes");
  step(adascale, {{1, 2, 0, 0}, {2, 1, 0, 0}});
}

// Nobody knows what a pass that threw has added.
TEST_F(AdaScaleLoop, SaysThatTheLastPassDidNotEnd) {
  AdaScale adascale(sgd_, {.num_gradients_to_accumulate = 2, .is_scaled_loss = false});
  backward(parameter_, double_tensor({1, 0, 0, 0}));
  const unsigned hook =
      parameter_.register_hook([](const at::Tensor&) -> at::Tensor { throw Error("no memory"); });
  EXPECT_EQ(error_of([&] { backward(parameter_, double_tensor({0, 1, 0, 0})); }), "no memory");
  parameter_.remove_hook(hook);
  EXPECT_EQ(adascale.gain(), 1);
  EXPECT_EQ(
      error_of([&] { adascale.step(); }),
      "AdaScale: step() after a last backward pass that did not end; accepted: after zero_grad(), "
      "which drops the accumulation");
  adascale.zero_grad();
  step(adascale, {{1, 0, 0, 0}, {0, 1, 0, 0}});
}

TEST_F(AdaScaleLoop, HasAFloorRelativeToTheGradientsWhenAsked) {
  const auto gain_of = [&](std::optional<double> smallest) {
    AdaScale adascale(
        sgd_,
        {.num_gradients_to_accumulate = 2, .smallest_variance = smallest, .is_scaled_loss = false});
    step(adascale, {{1e-8, 2e-8, 0, 0}, {2e-8, 1e-8, 0, 0}});
    return adascale.gain();
  };
  EXPECT_NEAR(gain_of(1e-6), 2, 1e-6);
  EXPECT_LT(gain_of(std::nullopt), 1.3);
}

TEST_F(AdaScaleLoop, ChangesOfScaleLeaveTheVarianceUnlessAsked) {
  AdaScale adascale(sgd_, {.num_gradients_to_accumulate = 4, .is_scaled_loss = false});
  step(adascale, orthogonal_);
  const double variance = adascale.estimator().variance(0);
  adascale.set_scale(8);
  EXPECT_EQ(adascale.estimator().variance(0), variance);
  adascale.set_scale(2, /*update_estimate=*/true);
  EXPECT_DOUBLE_EQ(adascale.estimator().variance(0), 4 * variance);
}

TEST_F(AdaScaleLoop, SkipsAndCountsGradientsThatAreNotFinite) {
  AdaScale adascale(sgd_, {.num_gradients_to_accumulate = 2, .is_scaled_loss = false});
  step(adascale, {{1, 0, 0, 0}, {0, 1, 0, 0}});
  const double gain = adascale.gain();
  step(adascale, {{std::numeric_limits<double>::infinity(), 0, 0, 0}, {0, 1, 0, 0}});
  EXPECT_EQ(adascale.gain(), gain);
  EXPECT_EQ(adascale.estimator().skipped(), 1);
}

TEST_F(AdaScaleLoop, TakesParameterGroupsOnTheWay) {
  AdaScale adascale(sgd_, {.num_gradients_to_accumulate = 2, .is_scaled_loss = false});
  step(adascale, identical_);
  const at::Tensor added = parameter_of({5, 6});
  adascale.add_param_group(
      torch::optim::OptimizerParamGroup({added}, std::make_unique<torch::optim::SGDOptions>(0.5)));
  EXPECT_EQ(adascale.gain(1), 1);
  adascale.zero_grad();
  for (const auto& gradient : {std::vector<double>{1, 0}, {0, 1}}) {
    ((parameter_ * double_tensor({1, 1, 0, 0})).sum() + (added * double_tensor(gradient)).sum())
        .backward();
  }
  adascale.step();
  EXPECT_NEAR(adascale.gain(0), 1, 1e-6);
  EXPECT_NEAR(adascale.gain(1), 2, 1e-9);
  EXPECT_TRUE(at::allclose(added.detach(), double_tensor({4.5, 5.5}), 1e-9, 0));
}

TEST_F(AdaScaleLoop, RefusesParameterGroupsThatItDoesNotMeasure) {
  AdaScale adascale(sgd_, {.num_gradients_to_accumulate = 4, .is_scaled_loss = false});
  sgd_.add_param_group(torch::optim::OptimizerParamGroup(
      {parameter_of({5, 6})}, std::make_unique<torch::optim::SGDOptions>(0.5)));
  for (const auto& gradient : orthogonal_) backward(parameter_, double_tensor(gradient));
  EXPECT_EQ(error_of([&] { adascale.step(); }),
            "AdaScale: step() of 2 parameter groups, and 1 are measured; accepted: groups that "
            "AdaScale::add_param_group() adds");
  EXPECT_EQ(sgd_.param_groups()[0].options().get_lr(), 0.1);
  EXPECT_EQ(sgd_.param_groups()[1].options().get_lr(), 0.5);
}

TEST_F(AdaScaleLoop, RefusesStatesWithNumbersOutOfRange) {
  AdaScale adascale(sgd_, {.num_gradients_to_accumulate = 4});
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto error_with = [&](std::size_t index, double number) {
    const std::string state = adascale.state_dict();
    torch::serialize::InputArchive in;
    in.load_from(state.data(), state.size());
    at::Tensor numbers;
    in.read("adascale", numbers, /*is_buffer=*/true);
    numbers.data_ptr<double>()[index] = number;
    torch::serialize::OutputArchive of_optimizer;
    sgd_.save(of_optimizer);
    torch::serialize::OutputArchive out;
    out.write("optimizer", of_optimizer);
    out.write("adascale", numbers, /*is_buffer=*/true);
    std::ostringstream bytes;
    out.save_to(bytes);
    return error_of([&] { adascale.load_state_dict(bytes.str()); });
  };
  EXPECT_EQ(error_with(1, 5), "no error");
  // Scale, number of gradients, smoothing.
  for (const auto& [index, number] : std::vector<std::pair<std::size_t, double>>{
           {0, kInfinity}, {1, kInfinity}, {1, 1e300}, {1, 2.5}, {2, -kInfinity}, {2, -0.5}}) {
    EXPECT_THAT(error_with(index, number), HasSubstr("its numbers are out of their ranges"))
        << index << ' ' << number;
  }
  EXPECT_EQ(adascale.scale(), 4);
}

TEST_F(AdaScaleLoop, GoesOnFromItsStateDict) {
  torch::optim::SGD with_momentum({parameter_}, torch::optim::SGDOptions(0.1).momentum(0.9));
  AdaScale adascale(with_momentum, {.num_gradients_to_accumulate = 4, .is_scaled_loss = false});
  step(adascale, orthogonal_);
  const std::string state = adascale.state_dict();
  const at::Tensor copy = parameter_.detach().clone().requires_grad_();
  torch::optim::SGD sgd({copy}, torch::optim::SGDOptions(0.1).momentum(0.9));
  AdaScale other(sgd, {.num_gradients_to_accumulate = 2, .is_scaled_loss = false});
  other.load_state_dict(state);
  EXPECT_EQ(other.scale(), 4);
  EXPECT_EQ(other.gain(), adascale.gain());
  const std::vector<std::vector<double>> next{
      {1, 2, 0, 0}, {0, 1, 1, 0}, {1, 0, 1, 0}, {0, 2, 0, 1}};
  step(adascale, next);
  for (const auto& gradient : next) backward(copy, double_tensor(gradient));
  other.step();
  EXPECT_EQ(other.gain(), adascale.gain());
  EXPECT_TRUE(at::equal(copy.detach(), parameter_.detach())) << "momentum included";
  EXPECT_THAT(error_of([&] { other.load_state_dict("nothing"); }),
              HasSubstr("this is not a state of AdaScale"));
}

// A loop that fairscale's users wrote: losses divided by the number of passes, and nothing said of
// it. Numbers by fairscale's formulas, in its defaults.
TEST_F(AdaScaleLoop, TakesScaledLossesByDefaultAsFairscaleDoes) {
  AdaScale adascale(sgd_, {.num_gradients_to_accumulate = 4});
  adascale.zero_grad();
  for (const auto& gradient : orthogonal_) {
    ((parameter_ * double_tensor(gradient)).sum() / 4).backward();
  }
  // local = 4 (1/4)^2 4^2 = 4, total = 4 (1/4)^2 = 1/4: var = 4 (4/4)/3 - (1/4) 4/3 = 1.
  EXPECT_EQ(adascale.estimator().variance(0), 0) << "not before it is asked";
  EXPECT_NEAR(adascale.gain(), 4, 1e-9);
  EXPECT_NEAR(adascale.estimator().variance(0), 1, 1e-12);
  adascale.step();
  // Not divided a second time: w - 0.1 x 4 x 1/4.
  EXPECT_TRUE(at::allclose(parameter_.detach(), double_tensor({0.9, 1.9, 2.9, 3.9}), 1e-9, 0));
}

// With losses that are not, both ways give the same step: fairscale's, where the caller divides,
// and step() alone.
TEST_F(AdaScaleLoop, DividesGradientsOnce) {
  const auto loop = [&](bool by_hand) {
    const at::Tensor parameter = parameter_of({1, 2, 3, 4});
    torch::optim::SGD sgd({parameter}, torch::optim::SGDOptions(0.1));
    AdaScale adascale(sgd, {.num_gradients_to_accumulate = 4, .is_scaled_loss = false});
    for (const auto& gradient : orthogonal_) backward(parameter, double_tensor(gradient));
    if (by_hand) {
      adascale.scale_grad_by_num_grads_to_accum();
      EXPECT_THAT(error_of([&] { adascale.scale_grad_by_num_grads_to_accum(); }),
                  HasSubstr("twice in a step"));
    }
    EXPECT_NEAR(adascale.gain(), 4, 1e-9);
    adascale.step();
    EXPECT_TRUE(at::allclose(parameter.detach(), double_tensor({0.9, 1.9, 2.9, 3.9}), 1e-9, 0));
    // The next step begins anew.
    sgd.zero_grad();
    for (const auto& gradient : orthogonal_) backward(parameter, double_tensor(gradient));
    adascale.step();
    EXPECT_TRUE(at::allclose(parameter.detach(), double_tensor({0.8, 1.8, 2.8, 3.8}), 1e-9, 0));
  };
  loop(true);
  loop(false);
  AdaScale scaled(sgd_, {.num_gradients_to_accumulate = 2});
  EXPECT_THAT(error_of([&] { scaled.scale_grad_by_num_grads_to_accum(); }),
              HasSubstr("scale_grad_by_num_grads_to_accum() after 0 of 2 backward passes"));
  for (int i = 0; i < 2; ++i) backward(parameter_, double_tensor(orthogonal_[0]));
  EXPECT_THAT(error_of([&] { scaled.scale_grad_by_num_grads_to_accum(); }),
              HasSubstr("accepted: with is_scaled_loss = false"));
}

TEST_F(AdaScaleLoop, StepsWithAClosure) {
  AdaScale adascale(sgd_, {.num_gradients_to_accumulate = 4, .is_scaled_loss = false});
  int calls = 0;
  const auto closure = [&] {
    ++calls;
    adascale.zero_grad();
    at::Tensor sum = at::zeros({}, at::kDouble);
    for (const auto& gradient : orthogonal_) {
      const at::Tensor loss = (parameter_ * double_tensor(gradient)).sum();
      loss.backward();
      sum = sum + loss.detach();
    }
    return sum;
  };
  const at::NoGradGuard no_grad;
  const at::Tensor loss = adascale.step(closure);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(loss.item<double>(), 1 + 2 + 3 + 4);
  EXPECT_NEAR(adascale.gain(), 4, 1e-9);
  // The gain of these very gradients.
  EXPECT_TRUE(at::allclose(parameter_, double_tensor({0.9, 1.9, 2.9, 3.9}), 1e-9, 0));
  EXPECT_EQ(sgd_.param_groups()[0].options().get_lr(), 0.1);

  EXPECT_THAT(error_of([&] { adascale.step(torch::optim::Optimizer::LossClosure()); }),
              HasSubstr("empty closure"));
  EXPECT_THAT(error_of([&] { adascale.step([] { return at::zeros({}); }); }),
              HasSubstr("step() after 0 of 4 backward passes"));
  {
    const at::AutoGradMode with_gradients(true);
    backward(parameter_, double_tensor({1, 0, 0, 0}));
  }
  EXPECT_THAT(error_of([&] { adascale.step(closure); }),
              HasSubstr("step(closure) after 1 of 4 backward passes"));
}

TEST_F(AdaScaleLoop, KnowsItsGroups) {
  AdaScale adascale(sgd_, {.num_gradients_to_accumulate = 2});
  EXPECT_EQ(adascale.gain(0), 1);
  EXPECT_EQ(error_of([&] { return adascale.gain(9); }),
            "AdaScale: gain() of parameter group 9; accepted: 0 to 0");
}

TEST_F(AdaScaleLoop, KeepsTheSmoothingInItsStateDict) {
  AdaScale adascale(sgd_, {.num_gradients_to_accumulate = 2});
  adascale.set_num_gradients_to_accumulate(8, /*update_smoothing=*/false);
  EXPECT_DOUBLE_EQ(adascale.smoothing(), 0.998);
  AdaScale other(sgd_, {.num_gradients_to_accumulate = 2, .smoothing = 0.5});
  other.load_state_dict(adascale.state_dict());
  EXPECT_DOUBLE_EQ(other.smoothing(), 0.998);
  // And that it follows the number of gradients, where it does.
  adascale.set_num_gradients_to_accumulate(8);
  other.load_state_dict(adascale.state_dict());
  EXPECT_DOUBLE_EQ(other.smoothing(), 0.992);
  other.set_num_gradients_to_accumulate(4);
  EXPECT_DOUBLE_EQ(other.smoothing(), 0.996);
  // None at all is a smoothing, too.
  AdaScale none(sgd_, {.num_gradients_to_accumulate = 2, .smoothing = 0.0});
  other.load_state_dict(none.state_dict());
  EXPECT_EQ(other.smoothing(), 0);
}

TEST_F(AdaScaleLoop, HasNoStateInTheMiddleOfAnAccumulation) {
  AdaScale adascale(sgd_, {.num_gradients_to_accumulate = 2});
  backward(parameter_, double_tensor({1, 0, 0, 0}));
  EXPECT_EQ(
      error_of([&] { return adascale.state_dict(); }),
      "AdaScale: state_dict() in the middle of an accumulation, after 1 of 2 backward passes; "
      "accepted: after step(), or zero_grad(), which drops them");
}

TEST_F(AdaScaleLoop, LetsGoWhenItIsUnhooked) {
  {
    AdaScale adascale(sgd_, {.num_gradients_to_accumulate = 2, .is_scaled_loss = false});
    adascale.unhook();
    for (int i = 0; i < 5; ++i) backward(parameter_, double_tensor({1, 0, 0, 0}));
    EXPECT_EQ(error_of([&] { adascale.step(); }), "AdaScale: step() after unhook()");
  }
  // And when it is gone.
  backward(parameter_, double_tensor({1, 0, 0, 0}));
  EXPECT_EQ(parameter_.grad()[0].item<double>(), 6);
}

// Two workers that accumulate one or two gradients each are one that accumulates all of them.
TEST_F(AdaScaleLoop, AccumulatesOnSeveralWorkers) {
  const std::vector<std::vector<double>> here{{1, 2, 0, 0}, {0, 1, 1, 0}};
  const std::vector<std::vector<double>> there{{3, 0, 0, 1}, {0, 0, 2, 1}};
  for (const auto& [passes, scaled] : {std::pair(1, false), {1, true}, {2, false}, {2, true}}) {
    SCOPED_TRACE(testing::Message() << passes << scaled);
    // What is scaled is divided by the passes of a worker.
    const double part = scaled ? 1.0 / passes : 1;
    at::Tensor other_squares = at::zeros({}, at::kDouble);
    at::Tensor other_sum = at::zeros({4}, at::kDouble);
    const at::Tensor together = parameter_of({1, 2, 3, 4});
    torch::optim::SGD sgd({together}, torch::optim::SGDOptions(0.1));
    AdaScale two(sgd, {.world_size = 2,
                       .all_reduce_sum = [&](at::Tensor& sums) { sums += other_squares; },
                       .num_gradients_to_accumulate = passes,
                       .is_scaled_loss = scaled});
    EXPECT_EQ(two.scale(), 2 * passes);
    EXPECT_DOUBLE_EQ(two.smoothing(), 1 - 0.002 * passes);
    const at::Tensor alone = parameter_of({1, 2, 3, 4});
    torch::optim::SGD one_sgd({alone}, torch::optim::SGDOptions(0.1));
    AdaScale one(one_sgd, {.num_gradients_to_accumulate = 2 * passes, .is_scaled_loss = false});
    for (std::size_t i = 0; i < static_cast<std::size_t>(passes); ++i) {
      backward(together, double_tensor(here[i]) * part);
      const at::Tensor other = double_tensor(there[i]) * part;
      other_squares += other.square().sum();
      other_sum += other;
      backward(alone, double_tensor(here[i]));
      backward(alone, double_tensor(there[i]));
    }
    // The mean over the workers, as DDP leaves it.
    together.mutable_grad() = (together.grad() + other_sum) / 2;
    two.step();
    one.step();
    EXPECT_DOUBLE_EQ(two.gain(), one.gain());
    EXPECT_GT(one.gain(), 1.1);
    EXPECT_TRUE(at::allclose(together.detach(), alone.detach(), 1e-12, 0));
  }
}

// Whatever the optimizer throws, the rates are the user's again.
TEST_F(AdaScaleLoop, RestoresTheLearningRateWhenTheOptimizerThrows) {
  class Failing : public torch::optim::SGD {
   public:
    using torch::optim::SGD::SGD;
    at::Tensor step(LossClosure) override { throw Error("no step"); }
  };
  Failing failing({parameter_}, torch::optim::SGDOptions(0.1));
  AdaScale adascale(failing, {.num_gradients_to_accumulate = 2, .is_scaled_loss = false});
  backward(parameter_, double_tensor({1, 0, 0, 0}));
  backward(parameter_, double_tensor({0, 1, 0, 0}));
  EXPECT_EQ(error_of([&] { adascale.step(); }), "no step");
  EXPECT_GT(adascale.gain(), 1.5);
  EXPECT_EQ(failing.param_groups()[0].options().get_lr(), 0.1);
}

// What is frozen, and what no loss reaches, has no part in it.
TEST_F(AdaScaleLoop, PassesOverParametersWithoutAGradient) {
  const at::Tensor frozen = double_tensor({1, 2});
  const at::Tensor unused = parameter_of({1, 2});
  torch::optim::SGD sgd({parameter_, frozen, unused}, torch::optim::SGDOptions(0.1));
  AdaScale adascale(sgd, {.num_gradients_to_accumulate = 4, .is_scaled_loss = false});
  step(adascale, orthogonal_);
  EXPECT_NEAR(adascale.gain(), 4, 1e-9);
  EXPECT_TRUE(at::equal(frozen, double_tensor({1, 2})));
  EXPECT_TRUE(at::equal(unused.detach(), double_tensor({1, 2})));
}

}  // namespace
}  // namespace rubato
