// This file has MovingAverage, AdaScaleEstimator (rubato/numbers/adascale_estimator.hpp) and
// NoiseScale. Both estimators start from NoiseEstimate::of(), the unbiased estimates of the squared
// gradient and its variance from a step of at least two minibatches or from a pair of steps, and
// both average the two numbers over the steps before they divide them. AdaScale keeps averages for
// each parameter group, refers the variance to a batch of scale 1, and bounds both estimates from
// below; the noise scale refers the variance to a single sample, sums over the groups first, and
// has no bounds. Norms that are not finite never enter an average.

#include "gradient_noise.hpp"

#include <algorithm>
#include <cmath>

#include <rubato/numbers/adascale_estimator.hpp>

#include "base/core/check.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

void MovingAverage::add(double value, double smoothing, Averaging averaging) {
  if (averaging == Averaging::debiased) {
    state_.biased = smoothing * state_.biased + (1 - smoothing) * value;
    state_.weight = smoothing * state_.weight + (1 - smoothing);
    state_.value = state_.biased / state_.weight;
    return;
  }
  state_.count += 1;
  if (state_.count < 1 / (1 - smoothing)) {
    state_.total += value;
    state_.value = state_.total / state_.count;
  } else {
    state_.value = smoothing * state_.value + (1 - smoothing) * value;
  }
}

namespace {

// A variance below this share of the squared gradient is indistinguishable from rounding errors of
// identical gradients.
constexpr double kSmallestShare = 1e-6;
// The default smoothing is 1 - minibatches / kMemory.
constexpr double kMemory = 1000;

double gain_of(double signal, double variance, double scale) {
  // Gradients of 0 carry no information about a gain.
  if (signal + variance == 0) return std::min(1.0, scale);
  return (variance + signal) / (variance / scale + signal);
}

bool all_finite(std::span<const GradientNorms> groups) {
  return std::all_of(groups.begin(), groups.end(), [](const GradientNorms& norms) {
    return std::isfinite(norms.minibatch_square) && std::isfinite(norms.mean_square);
  });
}

}  // namespace

AdaScaleEstimator::AdaScaleEstimator(const AdaScaleOptions& options, std::size_t groups)
    : options_(options), averages_(groups) {
  if (options.smoothing && !(*options.smoothing >= 0 && *options.smoothing < 1)) {
    throw_error("AdaScale's smoothing {}: accepted are values from 0 to below 1",
                *options.smoothing);
  }
  if (const double least = options.smallest_variance.value_or(0); !(least >= 0)) {
    throw_error("AdaScale's smallest variance {}: accepted are values of at least 0", least);
  }
}

void AdaScaleEstimator::update(std::span<const GradientNorms> groups, std::int64_t minibatches,
                               double scale) {
  if (minibatches < 2) return;
  take_in(groups, static_cast<double>(minibatches), scale, smoothing(minibatches));
}

void AdaScaleEstimator::update_from_pair(std::span<const GradientNorms> groups, double scale) {
  // Two minibatches make a batch of twice the scale, but only one of them is new.
  take_in(groups, 2, 2 * scale, smoothing(1));
}

void AdaScaleEstimator::take_in(std::span<const GradientNorms> groups, double count, double scale,
                                double smooth) {
  RUBATO_CHECK(groups.size() == averages_.size(),
               "AdaScale needs the norms of every parameter group");
  if (!all_finite(groups)) {
    ++skipped_;
    return;
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const NoiseEstimate estimate = NoiseEstimate::of(groups[i], count);
    // A batch of scale 1 has minibatches / scale minibatches.
    const double of_scale_1 = scale / count;
    const double least = options_.smallest_variance.value_or(
        kSmallestShare * groups[i].minibatch_square * of_scale_1);
    const double variance = std::max(estimate.variance * of_scale_1, least);
    averages_[i].signal.add(std::max(estimate.signal, 0.0), smooth, options_.averaging);
    averages_[i].variance.add(variance, smooth, options_.averaging);
  }
  measured_ = true;
}

void AdaScaleEstimator::change_scale(double from, double to) {
  if (options_.rescale_variance) rescale_variance(from / to);
}

void AdaScaleEstimator::rescale_variance(double factor) {
  for (Averages& averages : averages_) averages.variance.rescale(factor);
}

void AdaScaleEstimator::add_group() {
  averages_.emplace_back();
}

double AdaScaleEstimator::gain(double scale) const {
  double signal = 0;
  double variance = 0;
  for (const Averages& averages : averages_) {
    signal += averages.signal.value();
    variance += averages.variance.value();
  }
  return gain_of(signal, variance, scale);
}

double AdaScaleEstimator::gain(double scale, std::size_t group) const {
  const Averages& averages = averages_.at(group);
  return gain_of(averages.signal.value(), averages.variance.value(), scale);
}

double AdaScaleEstimator::squared_gradient(std::size_t group) const {
  return averages_.at(group).signal.value();
}

double AdaScaleEstimator::variance(std::size_t group) const {
  return averages_.at(group).variance.value();
}

double AdaScaleEstimator::smoothing(std::int64_t minibatches) const {
  return options_.smoothing.value_or(std::max(1 - static_cast<double>(minibatches) / kMemory, 0.0));
}

void AdaScaleEstimator::visit_state(NumberVisitor& numbers) {
  numbers.flag(measured_);
  numbers.count(skipped_);
  for (Averages& averages : averages_) {
    averages.signal.visit_state(numbers);
    averages.variance.visit_state(numbers);
  }
}

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
