#pragma once

#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include <rubato/base/parse.hpp>

namespace rubato::test {

/// Expects that what `make` makes goes on from its state as if nothing had been: it is resumed
/// after every one of `steps` steps, and does and knows from there on what the one that was never
/// interrupted did and knew. `step(thing, i)` takes step i and returns all numbers that can be seen
/// of it.
template <class Make, class Step>
void expect_resumes(std::size_t steps, const Make& make, const Step& step) {
  using Numbers = std::vector<double>;
  const auto whole = make();
  std::vector<Numbers> states{numbers_of(*whole)};
  std::vector<Numbers> seen;
  for (std::size_t i = 0; i < steps; ++i) {
    seen.push_back(step(*whole, i));
    states.push_back(numbers_of(*whole));
  }
  for (std::size_t from = 0; from <= steps; ++from) {
    const auto resumed = make();
    load_numbers(*resumed, states[from], "it");
    ASSERT_EQ(numbers_of(*resumed), states[from]) << "loaded after " << from << " steps";
    for (std::size_t i = from; i < steps; ++i) {
      ASSERT_EQ(step(*resumed, i), seen[i]) << "step " << i << ", resumed after " << from;
      ASSERT_EQ(numbers_of(*resumed), states[i + 1]) << "step " << i << ", resumed after " << from;
    }
  }
}

}  // namespace rubato::test
