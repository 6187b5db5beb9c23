#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>

#include "libtorch/model/dispatch_scopes.hpp"
#include "libtorch/operators/operators.hpp"

namespace rubato {
namespace {

at::Tensor in_half(const at::Tensor& tensor) {
  return tensor.to(at::kHalf).to(at::kFloat);
}

bool is_half(const at::Tensor& tensor) {
  return at::equal(tensor, in_half(tensor));
}

TEST(RoundToHalf, IsTheConversionThereAndBack) {
  std::vector<float> values{0.0F,
                            -0.0F,
                            65504,
                            65519.996F,
                            65520,
                            -65520,
                            1e30F,
                            std::ldexp(1.0F, -14),
                            std::ldexp(1.0F, -24),
                            std::ldexp(1.0F, -25),
                            std::nextafter(std::ldexp(1.0F, -25), 1.0F),
                            std::ldexp(3.0F, -25),
                            std::numeric_limits<float>::denorm_min(),
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()};
  std::mt19937 generator(1);
  // Of all magnitudes that a half has, and halfway between two of them.
  for (int i = 0; i < 200'000; ++i) {
    const auto exponent = static_cast<std::uint32_t>(95 + generator() % 55);
    std::uint32_t bits = (generator() & 0x807FFFFFU) | (exponent << 23U);
    if (i % 3 == 0) bits = (bits & ~0x1FFFU) | 0x1000U;
    values.push_back(std::bit_cast<float>(bits));
  }
  std::vector<float> rounded = values;
  round_to_half(rounded);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto expected = static_cast<float>(c10::Half(values[i]));
    ASSERT_EQ(std::bit_cast<std::uint32_t>(rounded[i]), std::bit_cast<std::uint32_t>(expected))
        << values[i];
  }
  std::vector<float> nan{std::numeric_limits<float>::quiet_NaN()};
  round_to_half(nan);
  EXPECT_TRUE(std::isnan(nan[0]));
}

TEST(RoundToHalf, TakesTensorsOfAnyLayout) {
  at::manual_seed(1);
  const at::Tensor values = at::randn({4, 6, 5, 3});
  const at::Tensor expected = in_half(values);
  for (const at::Tensor& tensor :
       {values.clone(), values.contiguous(at::MemoryFormat::ChannelsLast),
        values.clone().transpose(0, 2)}) {
    const at::Tensor before = tensor.clone();
    round_to_half(tensor);
    EXPECT_TRUE(at::equal(tensor, in_half(before)));
  }
  // Of a slice, no more than the slice.
  const at::Tensor whole = values.clone();
  round_to_half(whole.select(3, 1));
  EXPECT_TRUE(at::equal(whole.select(3, 1), expected.select(3, 1)));
  EXPECT_TRUE(at::equal(whole.select(3, 0), values.select(3, 0)));
  const at::Tensor numbers = at::arange(5);
  round_to_half(numbers);
  EXPECT_TRUE(at::equal(numbers, at::arange(5)));
}

class HalfStorageOf : public testing::Test {
 protected:
  void SetUp() override { at::manual_seed(2); }
};

TEST_F(HalfStorageOf, RoundsWhatOperatorsReturn) {
  const at::Tensor a = in_half(at::randn({8, 16}));
  const at::Tensor b = in_half(at::randn({16, 4}));
  const at::Tensor full = at::matmul(a, b);
  ASSERT_FALSE(is_half(full));
  const HalfStorage storage(true);
  EXPECT_TRUE(at::equal(at::matmul(a, b), in_half(full)));
  // In place, and into a view of what is there.
  at::Tensor target = at::zeros({8, 4});
  target.add_(full);
  EXPECT_TRUE(at::equal(target, in_half(full)));
  // What is only looked at stays as it is.
  const at::Tensor looked_at = full.t();
  EXPECT_EQ(looked_at.data_ptr(), full.data_ptr());
  EXPECT_FALSE(is_half(full));
}

TEST_F(HalfStorageOf, RoundsBackwardAsWell) {
  const at::Tensor x = in_half(at::randn({16, 8}));
  at::Tensor w1 = in_half(at::randn({32, 8}) / 3).requires_grad_();
  at::Tensor w2 = in_half(at::randn({4, 32}) / 5).requires_grad_();
  at::Tensor of_hidden;
  {
    const HalfStorage storage(true);
    const at::Tensor hidden = at::tanh(at::linear(x, w1));
    hidden.register_hook([&](const at::Tensor& gradient) { of_hidden = gradient; });
    const at::Tensor out = at::linear(hidden, w2);
    EXPECT_TRUE(is_half(hidden.detach()));
    EXPECT_TRUE(is_half(out.detach()));
    out.backward(at::ones({16, 4}) / 3);
  }
  EXPECT_TRUE(is_half(w1.grad()));
  EXPECT_TRUE(is_half(w2.grad()));
  EXPECT_TRUE(is_half(of_hidden)) << "of activations, too";
}

// As GPUs' kernels do that compute it in one pass.
TEST_F(HalfStorageOf, RoundsAttentionAsAWhole) {
  const ReplacedOperators all;
  const OperatorScope operators(all);
  const at::Tensor projection = in_half(at::randn({3, 7, 3 * 8})).requires_grad_();
  const at::Tensor full = attention_of(projection, 2, {});
  ASSERT_FALSE(is_half(full.detach()));
  const HalfStorage storage(true);
  const at::Tensor output = attention_of(projection, 2, {});
  EXPECT_TRUE(at::equal(output.detach(), in_half(full.detach())));
  output.backward(at::ones({3, 7, 8}) / 3);
  EXPECT_TRUE(is_half(projection.grad()));
}

// What is too small for a float16 is gone, and what is too large infinite.
TEST_F(HalfStorageOf, UnderflowsAndOverflows) {
  const at::Tensor w = at::ones({3}).requires_grad_();
  const HalfStorage storage(true);
  (w * 1.0).backward(at::tensor({1e-8F, 1.0F, 1e6F}));
  EXPECT_EQ(w.grad()[0].item<float>(), 0);
  EXPECT_EQ(w.grad()[1].item<float>(), 1);
  EXPECT_TRUE(std::isinf(w.grad()[2].item<float>()));
}

TEST_F(HalfStorageOf, LeavesRunningStatisticsAlone) {
  const at::Tensor x = in_half(at::randn({16, 3, 4, 4}) + 0.3);
  const auto normalise = [&](const at::Tensor& mean, const at::Tensor& variance) {
    return at::batch_norm(x, {}, {}, mean, variance, /*training=*/true, 0.1, 1e-5, false);
  };
  const at::Tensor expected_mean = at::zeros({3});
  const at::Tensor expected_variance = at::ones({3});
  const at::Tensor expected = normalise(expected_mean, expected_variance);
  const HalfStorage storage(true);
  const at::Tensor mean = at::zeros({3});
  const at::Tensor variance = at::ones({3});
  EXPECT_TRUE(at::equal(normalise(mean, variance), in_half(expected)));
  EXPECT_TRUE(at::equal(mean, expected_mean));
  EXPECT_FALSE(is_half(mean));
  EXPECT_TRUE(at::equal(variance, expected_variance));
}

TEST_F(HalfStorageOf, IsOfOneThreadAndEnds) {
  const at::Tensor a = at::randn({4, 4});
  {
    const HalfStorage storage(true);
    bool elsewhere = true;
    std::thread other([&] { elsewhere = is_half(at::matmul(a, a)); });
    other.join();
    EXPECT_FALSE(elsewhere);
    EXPECT_TRUE(is_half(at::matmul(a, a)));
  }
  EXPECT_FALSE(is_half(at::matmul(a, a)));
}

}  // namespace
}  // namespace rubato
