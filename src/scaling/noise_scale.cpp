#include "scaling/noise_scale.hpp"

#include <cmath>

#include <rubato/core/error.hpp>

namespace rubato {

void NoiseScale::update(std::span<const GradientNorms> groups, std::int64_t minibatches,
                        std::int64_t minibatch_size) {
  if (minibatches < 2) return;
  GradientNorms all;
  for (const GradientNorms& norms : groups) {
    all.minibatch_square += norms.minibatch_square;
    all.mean_square += norms.mean_square;
  }
  if (!std::isfinite(all.minibatch_square) || !std::isfinite(all.mean_square)) return;
  const NoiseEstimate estimate = NoiseEstimate::of(all, static_cast<double>(minibatches));
  signal_.add(estimate.signal, smoothing_, Averaging::debiased);
  // A minibatch's gradient is a mean over its samples.
  variance_.add(estimate.variance * static_cast<double>(minibatch_size), smoothing_,
                Averaging::debiased);
}

std::optional<double> NoiseScale::value() const {
  if (!(signal_.value() > 0)) return std::nullopt;
  return variance_.value() / signal_.value();
}

std::vector<double> NoiseScale::state() const {
  std::vector<double> numbers;
  for (const MovingAverage* average : {&signal_, &variance_}) {
    const MovingAverage::State& s = average->state();
    numbers.insert(numbers.end(), {s.value, s.biased, s.weight});
  }
  return numbers;
}

void NoiseScale::load_state(std::span<const double> state) {
  constexpr std::size_t kOfAverage = 3;
  if (state.size() != 2 * kOfAverage) throw Error("the state of the noise scale is damaged");
  std::size_t at = 0;
  for (MovingAverage* average : {&signal_, &variance_}) {
    const auto s = state.subspan(at, kOfAverage);
    average->load_state({.value = s[0], .biased = s[1], .weight = s[2], .total = 0, .count = 0});
    at += kOfAverage;
  }
}

}  // namespace rubato
