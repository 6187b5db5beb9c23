#include "lbsgd_rule.hpp"

#include <algorithm>
#include <cmath>

#include <rubato/base/error.hpp>

#include "base/core/check.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

constexpr double kSmallestLayerFactor = 0.01;
constexpr double kLargestLayerFactor = 100;

void require_not_negative(double value, const char* what) {
  if (value >= 0 && std::isfinite(value)) return;
  throw_error("LBSGD's {} {}: accepted are values of at least 0", what, value);
}

double shape(LbsgdWarmup warmup, double x) {
  switch (warmup) {
    case LbsgdWarmup::linear:
      return x;
    case LbsgdWarmup::power2:
      return x * x;
    case LbsgdWarmup::sqrt:
      return std::sqrt(x);
    case LbsgdWarmup::lars:
      break;
  }
  RUBATO_CHECK(false, "the warm-up is a function of the updates");
  return 0;
}

}  // namespace

double lbsgd_factor(LbsgdWarmup warmup, double scale, double updates, double warmup_updates) {
  if (updates >= warmup_updates) return scale;
  return 1 + (scale - 1) * shape(warmup, updates / warmup_updates);
}

double lbsgd_layer_factor(const ParameterNorms& layer) {
  // The term avoids a division by zero; it is far too small to change a factor within the bounds.
  constexpr double kTiny = 1e-18;
  const double factor =
      std::sqrt(layer.weight_square /
                (layer.gradient_square + layer.weight_decay * layer.weight_square + kTiny));
  return std::clamp(factor, kSmallestLayerFactor, kLargestLayerFactor);
}

LbsgdRule::LbsgdRule(const LbsgdOptions& options) : options_(options) {
  require_not_negative(options.warmup_epochs, "warm-up epochs");
  require_not_negative(options.begin_epoch, "begin epoch");
  require_not_negative(options.updates_per_epoch, "updates per epoch");
}

Rates LbsgdRule::rates(const RuleInput& input) {
  if (options_.warmup == LbsgdWarmup::lars) {
    RUBATO_CHECK(!input.layers.empty(), "LBSGD needs the norms of every layer");
    layer_factors_.resize(input.layers.size());
    std::transform(input.layers.begin(), input.layers.end(), layer_factors_.begin(),
                   lbsgd_layer_factor);
    Rates rates = scaled(input, 1);
    rates.layer_factors = layer_factors_;
    return rates;
  }
  double updates_per_epoch = options_.updates_per_epoch;
  if (updates_per_epoch == 0) {
    updates_per_epoch =
        static_cast<double>(input.epoch_size) / static_cast<double>(input.reference_batch_size);
  }
  if (updates_per_epoch == 0 && options_.warmup_epochs > 0) {
    throw Error("rule lbsgd needs the updates of an epoch for its warm-up");
  }
  updates_ += input.scale();
  return scaled(input, lbsgd_factor(options_.warmup, input.scale(),
                                    updates_ + options_.begin_epoch * updates_per_epoch,
                                    options_.warmup_epochs * updates_per_epoch));
}

}  // namespace rubato
