#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include <rubato/operators/operators.hpp>

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
Normalised normalised(const OwnOperators& operators, const at::Tensor& input, bool affine) {
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
      {32, 10, 12, 12}, {5, 3, 7, 9}, {2, 33, 1, 1}, {64, 17},       {4, 6, 11},
      {3, 4, 2, 3, 5},  {2, 1, 8, 8}, {1, 5, 3, 3},  {3, 2, 50, 50}, {200, 20, 2, 2}};
  return all;
}

TEST(BatchNorm, IsThatOfDoublesRounded) {
  for (const auto& sizes : shapes()) {
    for (const bool affine : {true, false}) {
      SCOPED_TRACE(::testing::PrintToString(sizes) + (affine ? " affine" : ""));
      // Away from zero, where a sum of squares would lose its digits.
      const at::Tensor input = random_tensor(sizes) * 3 + 20;
      const Normalised exact = normalised(OwnOperators::none(), input.to(at::kDouble), affine);
      const Normalised theirs = normalised(OwnOperators::none(), input, affine);
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
  const auto bits = [&](const OwnOperators& operators, const at::Tensor& of, bool training) {
    const OperatorScope scope(operators);
    const at::Tensor mean = at::ones({10}, of.options()) / 3;
    return std::get<0>(at::native_batch_norm(of, {}, {}, mean, mean, training, kMomentum, kEps));
  };
  const OwnOperators all;
  const OwnOperators none = OwnOperators::none();
  const OwnOperators others{.batch_norm = false};
  EXPECT_FALSE(at::equal(bits(all, input, true), bits(none, input, true)));
  EXPECT_TRUE(at::equal(bits(others, input, true), bits(none, input, true)));
  EXPECT_TRUE(at::equal(bits(all, input, false), bits(none, input, false)));
  const at::Tensor wide = input.to(at::kDouble);
  EXPECT_TRUE(at::equal(bits(all, wide, true), bits(none, wide, true)));
  const at::Tensor other = random_tensor({12, 10, 32, 12}).transpose(0, 2);
  EXPECT_TRUE(at::equal(bits(all, other, true), bits(none, other, true)));
}

TEST(BatchNorm, GivesOnlyTheGradientsThatAreWanted) {
  const OwnOperators all;
  const OperatorScope scope(all);
  const at::Tensor input = channels_last(random_tensor({4, 3, 5, 5}));
  const auto [output, mean, invstd] =
      at::native_batch_norm(input, {}, {}, {}, {}, true, kMomentum, kEps);
  const auto gradients = [&](std::array<bool, 3> wanted) {
    return at::native_batch_norm_backward(output, input, {}, {}, {}, mean, invstd, true, kEps,
                                          wanted);
  };
  EXPECT_FALSE(std::get<0>(gradients({false, true, true})).defined());
  EXPECT_FALSE(std::get<1>(gradients({true, false, true})).defined());
  EXPECT_FALSE(std::get<2>(gradients({true, true, false})).defined());
}

}  // namespace
}  // namespace rubato
