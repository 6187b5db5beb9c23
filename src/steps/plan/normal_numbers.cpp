#include <cmath>

#include <rubato/steps/random.hpp>

#include "base/core/mix.hpp"
#include "base/core/numbers/functions.hpp"

namespace rubato {

NormalNumbers::NormalNumbers(const StreamKey& key)
    : seed_(seed_of(key.seed, {key.epoch, key.step, key.minibatch})) {}

double NormalNumbers::uniform(std::uint64_t n) const {
  constexpr std::uint64_t kStep = 0x9E37'79B9'7F4A'7C15;
  return static_cast<double>(mixed(seed_ + n * kStep) >> 11U) * 0x1p-53;
}

std::array<double, 2> NormalNumbers::pair(std::uint64_t n) const {
  // The logarithm's argument is above 0, because uniform numbers are below 1.
  const double radius = std::sqrt(-2 * quick::log(1 - uniform(2 * n)));
  const auto [cosine, sine] = quick::direction(uniform(2 * n + 1));
  return {radius * cosine, radius * sine};
}

}  // namespace rubato
