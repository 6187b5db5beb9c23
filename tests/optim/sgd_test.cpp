#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/numbers/sums.hpp>

#include "loop/optim/make_optimizer.hpp"
#include "support/random_values.hpp"

namespace rubato {
namespace {

using test::random_values;

template <class T>
class SgdOf : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(SgdOf, Types);

// One task updates 65,536 parameters: sizes around that, and of several tasks.
TYPED_TEST(SgdOf, GivesTheSameBitsForEveryNumberOfThreads) {
  using T = TypeParam;
  constexpr std::size_t kShard = 65'536;
  const OptimizerOptions options{
      .method = SgdOptions{.nesterov = true}, .momentum = 0.9, .weight_decay = 0.01};
  const Rates rates{.learning_rate = 0.1, .update_rate = 0.1, .weight_decay_factor = 2};
  for (const std::size_t size : {kShard - 1, kShard, kShard + 1, 5 * kShard + 12'345}) {
    // The whole buffer in one piece.
    auto expected = random_values<T>(size, 1);
    std::vector<T> velocity(size, T{0});
    for (std::uint32_t step = 0; step < 3; ++step) {
      const auto gradient = random_values<T>(size, 10 + step);
      sgd_step(std::span<T>(expected), std::span<T>(velocity), std::span<const T>(gradient),
               {.gradient_factor = T{1} / T{3},
                .learning_rate = static_cast<T>(0.1),
                .momentum = static_cast<T>(0.9),
                .weight_decay = static_cast<T>(0.02),
                .nesterov = true});
    }
    for (const int threads : {1, 2, 4}) {
      Workers workers(threads);
      const auto sgd = make_optimizer<T>(options, ParameterLayout::whole(size), {});
      auto parameters = random_values<T>(size, 1);
      for (std::uint32_t step = 0; step < 3; ++step) {
        const auto gradient = random_values<T>(size, 10 + step);
        sgd->step({.parameters = parameters,
                   .gradient_sum = gradient,
                   .gradient_factor = T{1} / T{3},
                   .rates = rates},
                  workers);
      }
      EXPECT_TRUE(parameters == expected) << size << " parameters, " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace rubato
