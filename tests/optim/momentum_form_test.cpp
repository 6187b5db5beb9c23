#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/numbers/rule.hpp>

#include "loop/optim/make_optimizer.hpp"
#include "numbers/scaling/lbsgd_rule.hpp"
#include "support/random_values.hpp"

namespace rubato {
namespace {

using test::random_values;

double square_of(std::span<const double> values) {
  double square = 0;
  for (const double value : values) square += value * value;
  return square;
}

constexpr std::size_t kFirstTensor = 24;
constexpr std::size_t kBothTensors = 40;

// Two tensors.
ParameterLayout two_tensors() {
  return {.layer_ends = {kFirstTensor, kBothTensors}, .layer_groups = {0, 0}};
}

std::vector<ParameterNorms> norms_of(std::span<const double> weights,
                                     std::span<const double> gradient, double decay) {
  std::vector<ParameterNorms> norms;
  std::size_t begin = 0;
  for (const std::size_t end : {kFirstTensor, kBothTensors}) {
    norms.push_back({.weight_square = square_of(weights.subspan(begin, end - begin)),
                     .gradient_square = square_of(gradient.subspan(begin, end - begin)),
                     .weight_decay = decay});
    begin = end;
  }
  return norms;
}

std::size_t tensor_at(std::size_t i) {
  return i < kFirstTensor ? 0 : 1;
}

void expect_near(std::span<const double> found, std::span<const double> expected,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-9 * std::max(1.0, std::abs(expected[i])))
        << what << ", element " << i;
  }
}

// MXNet's update of a layer (pull request 8918): mom = momentum mom - lr (g + wd w), w = w + mom,
// where lr is the base rate times the warm-up's multiplier or times the layer's own.
void expect_mxnets_lbsgd(const std::string& warmup) {
  constexpr double kMomentum = 0.9;
  constexpr double kDecay = 0.001;
  constexpr double kRate = 0.05;
  constexpr std::int64_t kReference = 32;
  // The factors of lars are the same from the first update on.
  const auto rule = RuleChoice("lbsgd:warmup=" + warmup +
                               (warmup == "lars" ? "" : ",epochs=2,updates-per-epoch=40"))
                        .make();
  ASSERT_EQ(rule->momentum_form(), MomentumForm::mxnet);
  Workers workers(2);
  const auto sgd =
      make_optimizer<double>({.method = SgdOptions{.momentum_form = rule->momentum_form().value()},
                              .momentum = kMomentum,
                              .weight_decay = kDecay},
                             two_tensors(), {});
  std::vector<double> weights = random_values<double>(kBothTensors, 1);
  std::vector<double> expected = weights;
  std::vector<double> mom(kBothTensors, 0);
  double updates = 0;
  // The warm-up ends on the way, and the batch changes.
  const std::array<std::int64_t, 4> batches{32, 256, 64, 128};
  for (std::uint32_t step = 0; step < 20; ++step) {
    const std::int64_t batch = batches[step / 2 % 4];
    const double scale = static_cast<double>(batch) / kReference;
    const auto gradient = random_values<double>(kBothTensors, 10 + step);
    const auto norms = norms_of(expected, gradient, kDecay);
    const Rates rates = rule->rates({.batch_size = batch,
                                     .minibatch_size = kReference,
                                     .reference_batch_size = kReference,
                                     .base_learning_rate = kRate,
                                     .layers = norms});
    sgd->step({.parameters = weights, .gradient_sum = gradient, .rates = rates}, workers);

    updates += scale;
    const double part = updates / 80;
    double multiplier = scale;
    if (part < 1) {
      const double shape = warmup == "linear"   ? part
                           : warmup == "power2" ? part * part
                                                : std::sqrt(part);
      multiplier = 1 + (scale - 1) * shape;
    }
    for (std::size_t i = 0; i < kBothTensors; ++i) {
      double lr = kRate * multiplier;
      if (warmup == "lars") {
        const ParameterNorms& layer = norms[tensor_at(i)];
        const double ratio =
            layer.weight_square / (layer.gradient_square + kDecay * layer.weight_square + 1e-18);
        lr = kRate * std::clamp(std::sqrt(ratio), 0.01, 100.0);
      }
      mom[i] = kMomentum * mom[i] - lr * (gradient[i] + kDecay * expected[i]);
      expected[i] += mom[i];
    }
  }
  expect_near(weights, expected, warmup);
}

TEST(MomentumForm, OfLbsgdIsMxnets) {
  for (const char* warmup : {"linear", "power2", "sqrt", "lars"}) expect_mxnets_lbsgd(warmup);
  EXPECT_EQ(RuleChoice("lbsgd:ramp=3").make()->momentum_form(), MomentumForm::mxnet);
  EXPECT_EQ(RuleChoice("linear").make()->momentum_form(), std::nullopt);
}

// Without momentum there is one form, to the bit.
TEST(MomentumForm, IsNothingWithoutMomentum) {
  const auto train = [](MomentumForm form) {
    Workers workers(1);
    const auto sgd =
        make_optimizer<float>({.method = SgdOptions{.momentum_form = form}, .weight_decay = 0.01},
                              ParameterLayout::whole(kBothTensors), {});
    auto weights = random_values<float>(kBothTensors, 1);
    const auto gradient = random_values<float>(kBothTensors, 2);
    sgd->step({.parameters = weights,
               .gradient_sum = gradient,
               .gradient_factor = 1.0F / 3,
               .rates = {.update_rate = 0.1}},
              workers);
    return weights;
  };
  EXPECT_TRUE(train(MomentumForm::pytorch) == train(MomentumForm::mxnet));
}

}  // namespace
}  // namespace rubato
