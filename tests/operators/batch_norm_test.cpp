#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include "libtorch/operators/operators.hpp"
#include "operators/random_tensors.hpp"

namespace rubato {
namespace {

using test::channels_last;
using test::random_tensor;
using test::relative_error;

constexpr double kMomentum = 0.3;
constexpr double kEps = 1e-5;
// A few roundings of float32.
constexpr double kNormTolerance = 2e-6;

struct Normalised {
  at::Tensor output;
  at::Tensor mean;
  at::Tensor invstd;
  at::Tensor running_mean;
  at::Tensor running_var;
  at::Tensor input_gradient;
  at::Tensor weight_gradient;
  at::Tensor bias_gradient;
};

// With parameters, or without any.
Normalised normalised(const ReplacedOperators& operators, const at::Tensor& input, bool affine) {
  const OperatorScope scope(operators);
  const std::int64_t channels = input.size(1);
  const auto type = input.options();
  const auto or_none = [&](const at::Tensor& tensor) {
    return affine ? c10::optional<at::Tensor>(tensor.to(type)) : c10::optional<at::Tensor>();
  };
  const auto weight = or_none(random_tensor({channels}, 2) + 2);
  const auto bias = or_none(random_tensor({channels}, 3));
  const auto running_mean = or_none(random_tensor({channels}, 4).clone());
  const auto running_var = or_none(random_tensor({channels}, 5).abs().clone());
  const auto [output, mean, invstd] =
      at::native_batch_norm(input, weight, bias, running_mean, running_var, true, kMomentum, kEps);
  at::Tensor gradient = random_tensor(input.sizes(), 6).to(type);
  const auto [of_input, of_weight, of_bias] =
      at::native_batch_norm_backward(gradient, input, weight, running_mean, running_var, mean,
                                     invstd, true, kEps, {true, affine, affine});
  return {output,
          mean,
          invstd,
          running_mean.value_or(at::Tensor()),
          running_var.value_or(at::Tensor()),
          of_input,
          of_weight,
          of_bias};
}

// As near to the doubles as libtorch's float32 is, give or take a few roundings.
void expect_close(const Normalised& ours, const Normalised& theirs, const Normalised& exact,
                  bool affine) {
  const auto compare = [&](const char* what, const at::Tensor Normalised::*member) {
    EXPECT_LT(relative_error(ours.*member, exact.*member),
              kNormTolerance + 3 * relative_error(theirs.*member, exact.*member))
        << what;
  };
  compare("output", &Normalised::output);
  compare("mean", &Normalised::mean);
  compare("invstd", &Normalised::invstd);
  compare("input gradient", &Normalised::input_gradient);
  if (!affine) return;
  compare("running mean", &Normalised::running_mean);
  compare("running variance", &Normalised::running_var);
  compare("weight gradient", &Normalised::weight_gradient);
  compare("bias gradient", &Normalised::bias_gradient);
}

const std::vector<std::vector<std::int64_t>>& shapes() {
  static const std::vector<std::vector<std::int64_t>> all{
      {32, 10, 12, 12},
      {5, 3, 7, 9},
      {2, 33, 1, 1},
      {64, 17},
      {4, 6, 11},
      {3, 4, 2, 3, 5},
      {2, 1, 8, 8},
      {1, 5, 3, 3},
      {3, 2, 50, 50},
      {200, 20, 2, 2},
      // Just below, at and above what a vector, a few pixels at a time, and a block hold.
      {2, 3, 15},
      {2, 3, 16},
      {2, 3, 17},
      {2, 3, 1023},
      {2, 3, 1024},
      {2, 3, 1025},
      {2, 3, 1039},
      {2, 3, 2049},
      {2, 1},
      {3, 5},
      {4, 5},
      {5, 5},
      {127, 3},
      {128, 3},
      {129, 3},
      {131, 3},
      {257, 16},
      {1, 3, 43, 3},
      {3, 15, 8, 8},
      // Numbers of channels that the compiler knows.
      {2, 16, 8, 8},
      {3, 32, 5, 9},
      {2, 64, 7, 7}};
  return all;
}

TEST(BatchNorm, IsThatOfDoublesRounded) {
  for (const auto& sizes : shapes()) {
    for (const bool affine : {true, false}) {
      SCOPED_TRACE(::testing::PrintToString(sizes) + (affine ? " affine" : ""));
      // Away from zero, where a sum of squares would lose its digits.
      const at::Tensor input = random_tensor(sizes) * 3 + 20;
      const Normalised exact = normalised(ReplacedOperators::none(), input.to(at::kDouble), affine);
      const Normalised theirs = normalised(ReplacedOperators::none(), input, affine);
      expect_close(normalised({}, input, affine), theirs, exact, affine);
      if (sizes.size() != 4) continue;
      const Normalised last = normalised({}, channels_last(input), affine);
      expect_close(last, theirs, exact, affine);
      EXPECT_EQ(last.output.strides(), channels_last(input).strides());
    }
  }
}

// It is ours: libtorch's has other bits.
TEST(BatchNorm, TakesWhatItSays) {
  const at::Tensor input = random_tensor({32, 10, 12, 12});
  const auto bits = [&](const ReplacedOperators& operators, const at::Tensor& of, bool training) {
    const OperatorScope scope(operators);
    const at::Tensor mean = at::ones({10}, of.options()) / 3;
    return std::get<0>(at::native_batch_norm(of, {}, {}, mean, mean, training, kMomentum, kEps));
  };
  const ReplacedOperators all;
  const ReplacedOperators none = ReplacedOperators::none();
  const ReplacedOperators others{.batch_norm = false};
  EXPECT_FALSE(at::equal(bits(all, input, true), bits(none, input, true)));
  EXPECT_TRUE(at::equal(bits(others, input, true), bits(none, input, true)));
  EXPECT_TRUE(at::equal(bits(all, input, false), bits(none, input, false)));
  const at::Tensor wide = input.to(at::kDouble);
  EXPECT_TRUE(at::equal(bits(all, wide, true), bits(none, wide, true)));
  const at::Tensor other = random_tensor({12, 10, 32, 12}).transpose(0, 2);
  EXPECT_TRUE(at::equal(bits(all, other, true), bits(none, other, true)));
}

// With parameters, or a gradient, that lie otherwise than it reads them.
TEST(BatchNorm, TakesTensorsThatLieOtherwise) {
  const ReplacedOperators all;
  const ReplacedOperators none = ReplacedOperators::none();
  for (const bool last : {false, true}) {
    const at::Tensor plain = random_tensor({6, 4, 5, 3});
    const at::Tensor input = last ? channels_last(plain) : plain;
    const at::Tensor weight = random_tensor({4}, 2) + 2;
    const at::Tensor strided = at::stack({weight, weight}, 1).select(1, 0);
    ASSERT_FALSE(strided.is_contiguous());
    const at::Tensor other = random_tensor({6, 4, 5, 3}, 6);
    const auto compute = [&](const ReplacedOperators& operators, const at::Tensor& scale,
                             const at::Tensor& gradient, bool mean_there, bool variance_there) {
      const OperatorScope scope(operators);
      c10::optional<at::Tensor> mean;
      c10::optional<at::Tensor> variance;
      if (mean_there) mean = at::zeros({4});
      if (variance_there) variance = at::ones({4});
      const auto [output, save_mean, save_invstd] =
          at::native_batch_norm(input, scale, {}, mean, variance, true, kMomentum, kEps);
      const auto gradients =
          at::native_batch_norm_backward(gradient, input, scale, mean, variance, save_mean,
                                         save_invstd, true, kEps, {true, true, true});
      return std::vector<at::Tensor>{output,
                                     std::get<0>(gradients),
                                     std::get<1>(gradients),
                                     std::get<2>(gradients),
                                     mean.value_or(at::zeros({4})),
                                     variance.value_or(at::ones({4}))};
    };
    const auto expect_near = [](const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b,
                                const char* what) {
      for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_TRUE(at::allclose(a[i], b[i], 1e-4, 1e-5)) << what << ", " << i;
      }
    };
    expect_near(compute(all, weight, other, true, true), compute(none, weight, other, true, true),
                "plain");
    expect_near(compute(all, strided, other, true, true), compute(none, weight, other, true, true),
                "strided weight");
    for (const at::Tensor& gradient :
         {channels_last(other), other.transpose(0, 2).contiguous().transpose(0, 2),
          at::full({1, 1, 1, 1}, 0.5).expand({6, 4, 5, 3}),
          random_tensor({6, 4, 1, 1}).expand({6, 4, 5, 3})}) {
      expect_near(compute(all, weight, gradient, true, true),
                  compute(none, weight, gradient.contiguous(), true, true), "another gradient");
    }
    // Where it is not followed it is not needed.
    expect_near(compute(all, weight, other, false, false),
                compute(none, weight, other, false, false), "nothing followed");
  }
}

// The share of a minibatch in the statistics.
TEST(BatchNorm, FollowsItsMomentum) {
  const at::Tensor input = random_tensor({8, 3, 4, 4}) * 2 + 1;
  const ReplacedOperators all;
  const OperatorScope scope(all);
  const at::Tensor flat = input.transpose(0, 1).reshape({3, -1}).to(at::kDouble);
  for (const double momentum : {0.0, 0.1, 1.0}) {
    const at::Tensor mean = at::full({3}, 5.0);
    const at::Tensor variance = at::full({3}, 7.0);
    static_cast<void>(at::native_batch_norm(input, {}, {}, mean, variance, true, momentum, kEps));
    const at::Tensor wanted_mean = (1 - momentum) * 5 + momentum * flat.mean(1);
    const at::Tensor wanted_variance =
        (1 - momentum) * 7 + momentum * flat.var(1, /*unbiased=*/true);
    EXPECT_LT(relative_error(mean, wanted_mean), kNormTolerance) << momentum;
    EXPECT_LT(relative_error(variance, wanted_variance), kNormTolerance) << momentum;
  }
}

TEST(BatchNorm, GivesOnlyTheGradientsThatAreWanted) {
  const ReplacedOperators all;
  const OperatorScope scope(all);
  const at::Tensor input = channels_last(random_tensor({4, 3, 5, 5}));
  const auto forward = at::native_batch_norm(input, {}, {}, {}, {}, true, kMomentum, kEps);
  const auto gradients = [&](std::array<bool, 3> wanted) {
    return at::native_batch_norm_backward(std::get<0>(forward), input, {}, {}, {},
                                          std::get<1>(forward), std::get<2>(forward), true, kEps,
                                          wanted);
  };
  EXPECT_FALSE(std::get<0>(gradients({false, true, true})).defined());
  EXPECT_FALSE(std::get<1>(gradients({true, false, true})).defined());
  EXPECT_FALSE(std::get<2>(gradients({true, true, false})).defined());
}

}  // namespace
}  // namespace rubato
