#include "noise_scale.hpp"

#include <cmath>

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

void NoiseScale::visit_state(NumberVisitor& numbers) {
  signal_.visit_debiased(numbers);
  variance_.visit_debiased(numbers);
}

}  // namespace rubato
