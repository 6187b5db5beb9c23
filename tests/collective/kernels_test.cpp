#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include <rubato/numbers/sums.hpp>

#include "support/random_values.hpp"

namespace rubato {
namespace {

using test::random_values;

template <class T>
class Kernels : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Kernels, Types);

TYPED_TEST(Kernels, AddIsElementwiseForEveryLength) {
  using T = TypeParam;
  for (const std::size_t n : {0U, 1U, 7U, 8U, 15U, 16U, 63U, 64U, 65U, 1000003U}) {
    const auto a = random_values<T>(n, 1);
    const auto b = random_values<T>(n, 2);
    auto sum = a;
    add(std::span<T>(sum), std::span<const T>(b));
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(sum[i], a[i] + b[i]) << i << " of " << n;
  }
}

TEST(KernelsDeath, ArraysOfTwoSizesAreNotAdded) {
  std::vector<float> two(2);
  std::vector<double> three(3);
  EXPECT_DEATH(add(std::span(two), std::span<const float>(two).first(1)), "arrays of one size");
  EXPECT_DEATH(add(std::span(two).first(1), std::span<const float>(two)), "arrays of one size");
  EXPECT_DEATH(add(std::span(three).first(2), std::span<const double>(three)),
               "arrays of one size");
}

TEST(KernelsDeath, EveryParameterHasAGradientAndWithMomentumAVelocity) {
  std::vector<float> all(6);
  const std::span<float> values(all);
  const auto step = [&](std::size_t gradients, std::size_t velocities, float momentum) {
    sgd_step(values.first(2), values.subspan(2, velocities),
             std::span<const float>(all).subspan(4, gradients),
             {.learning_rate = 1, .momentum = momentum});
  };
  EXPECT_DEATH(step(1, 2, 0), "every parameter has a gradient");
  EXPECT_DEATH(step(2, 1, 0.5F), "every parameter has a velocity");
  step(2, 0, 0);
  step(2, 2, 0.5F);
}

TYPED_TEST(Kernels, AllFiniteFindsOneAmongMany) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  EXPECT_TRUE(all_finite(std::span<const T>()));
  for (const std::size_t n : {1U, 7U, 8U, 64U, 1003U}) {
    auto values = random_values<T>(n, 1);
    values.front() = Limits::max();
    values.back() = -Limits::denorm_min();
    EXPECT_TRUE(all_finite(std::span<const T>(values)));
    for (const std::size_t place : {std::size_t{0}, n / 2, n - 1}) {
      for (const T bad : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
        auto spoilt = values;
        spoilt[place] = bad;
        EXPECT_FALSE(all_finite(std::span<const T>(spoilt))) << bad << " at " << place;
      }
    }
  }
}

TYPED_TEST(Kernels, SquaredNormHasItsOrder) {
  using T = TypeParam;
  for (const std::size_t n : {0U, 1U, 15U, 16U, 17U, 1003U}) {
    const auto values = random_values<T>(n, 5);
    const auto weights = random_values<T>(n, 6);
    const auto in_order = [&](const auto& value_of) {
      std::array<double, 16> lanes{};
      for (std::size_t i = 0; i < n; ++i) {
        volatile double value = value_of(i);
        volatile double square = value * value;
        lanes[i % 16] += square;
      }
      std::vector<double> row(lanes.begin(), lanes.end());
      while (row.size() > 1) {
        for (std::size_t i = 0; i < row.size() / 2; ++i) row[i] = row[2 * i] + row[2 * i + 1];
        row.resize(row.size() / 2);
      }
      return row.front();
    };
    const std::span<const T> of(values);
    EXPECT_EQ(squared_norm(of), in_order([&](std::size_t i) { return double{values[i]}; })) << n;
    EXPECT_EQ(squared_norm(of, std::span<const T>(weights)),
              in_order([&](std::size_t i) { return double{values[i]} * double{weights[i]}; }))
        << n;
  }
}

template <class T>
struct SgdState {
  std::vector<T> parameters;
  std::vector<T> velocity;
};

// The formula as it stands in the header. Volatile: each operation is rounded by itself.
template <class T>
void reference_step(SgdState<T>& state, const std::vector<T>& gradient,
                    const SgdCoefficients<T>& c) {
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    volatile T scaled = c.gradient_factor * gradient[i];
    volatile T decay = c.weight_decay * state.parameters[i];
    volatile T d = scaled + decay;
    volatile T kept = c.momentum * state.velocity[i];
    volatile T v = kept + d;
    volatile T ahead = c.momentum * v;
    volatile T direction = d;
    if (c.momentum != 0) {
      state.velocity[i] = v;
      direction = c.nesterov ? d + ahead : v;
    }
    volatile T change = c.learning_rate * direction;
    state.parameters[i] -= change;
  }
}

TYPED_TEST(Kernels, SgdStepIsItsFormulaToTheBit) {
  using T = TypeParam;
  const SgdCoefficients<T> variants[] = {
      {.gradient_factor = T{0.25}, .learning_rate = T(0.1)},
      {.gradient_factor = T(1) / T(3), .learning_rate = T(0.1), .weight_decay = T(0.01)},
      {.gradient_factor = T(1) / T(7),
       .learning_rate = T(0.1),
       .momentum = T(0.9),
       .weight_decay = T(0.01)},
      {.gradient_factor = T(1), .learning_rate = T(0.03), .momentum = T(0.5), .nesterov = true}};
  for (const auto& c : variants) {
    constexpr std::size_t kSize = 1003;
    SgdState<T> expected{random_values<T>(kSize, 3), random_values<T>(kSize, 4)};
    auto actual = expected;
    for (std::uint32_t step = 0; step < 5; ++step) {
      const auto gradient = random_values<T>(kSize, 10 + step);
      reference_step(expected, gradient, c);
      sgd_step(std::span<T>(actual.parameters), std::span<T>(actual.velocity),
               std::span<const T>(gradient), c);
    }
    EXPECT_EQ(actual.parameters, expected.parameters);
    EXPECT_EQ(actual.velocity, expected.velocity);
  }
}

TYPED_TEST(Kernels, CuttingAnArrayAnywhereChangesNoBit) {
  using T = TypeParam;
  constexpr std::size_t kSize = 257;
  const SgdCoefficients<T> c{.gradient_factor = T(1) / T(3),
                             .learning_rate = T(0.1),
                             .momentum = T(0.9),
                             .weight_decay = T(0.001),
                             .nesterov = true};
  const auto gradient = random_values<T>(kSize, 5);
  SgdState<T> whole{random_values<T>(kSize, 6), random_values<T>(kSize, 7)};
  const auto initial = whole;
  sgd_step(std::span<T>(whole.parameters), std::span<T>(whole.velocity), std::span(gradient), c);
  for (std::size_t cut = 0; cut <= kSize; ++cut) {
    auto parts = initial;
    const std::span<T> parameters(parts.parameters);
    const std::span<T> velocity(parts.velocity);
    const std::span<const T> from(gradient);
    sgd_step(parameters.first(cut), velocity.first(cut), from.first(cut), c);
    sgd_step(parameters.subspan(cut), velocity.subspan(cut), from.subspan(cut), c);
    ASSERT_EQ(parts.parameters, whole.parameters) << "cut at " << cut;
    ASSERT_EQ(parts.velocity, whole.velocity) << "cut at " << cut;
  }
}

}  // namespace
}  // namespace rubato
