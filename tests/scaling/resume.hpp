#pragma once

#include <concepts>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

namespace rubato::test {

/// Whatever keeps its state as numbers: rules, schedules, estimators.
template <class T>
concept Resumable = requires(T& thing, const std::vector<double>& numbers) {
  { thing.state() } -> std::convertible_to<std::vector<double>>;
  thing.load_state(numbers);
};

/// Expects that what `make` makes goes on from its state as if nothing had been: it is resumed
/// after every one of `steps` steps, and does and knows from there on what the one that was never
/// interrupted did and knew. `step(thing, i)` takes step i and returns all numbers that can be seen
/// of it.
template <class Make, class Step>
void expect_resumes(std::size_t steps, const Make& make, const Step& step) {
  using Numbers = std::vector<double>;
  static_assert(Resumable<std::remove_reference_t<decltype(*make())>>);
  const auto whole = make();
  std::vector<Numbers> states{whole->state()};
  std::vector<Numbers> seen;
  for (std::size_t i = 0; i < steps; ++i) {
    seen.push_back(step(*whole, i));
    states.push_back(whole->state());
  }
  for (std::size_t from = 0; from <= steps; ++from) {
    const auto resumed = make();
    resumed->load_state(states[from]);
    ASSERT_EQ(Numbers(resumed->state()), states[from]) << "loaded after " << from << " steps";
    for (std::size_t i = from; i < steps; ++i) {
      ASSERT_EQ(step(*resumed, i), seen[i]) << "step " << i << ", resumed after " << from;
      ASSERT_EQ(Numbers(resumed->state()), states[i + 1])
          << "step " << i << ", resumed after " << from;
    }
  }
}

}  // namespace rubato::test
