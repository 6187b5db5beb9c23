#include <cmath>
#include <limits>
#include <string_view>

#include <rubato/numbers/loss_scaler.hpp>

#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

// Losses are scaled in float32.
constexpr double kLargest = std::numeric_limits<float>::max();

void require(bool holds, std::string_view what, double value, std::string_view accepted) {
  if (holds && std::isfinite(value)) return;
  throw_error("loss scaling: {} {}: accepted are values {}", what, value, accepted);
}

}  // namespace

void require_valid(const LossScaleOptions& options) {
  require(options.initial > 0 && options.initial <= kLargest, "scale", options.initial, "above 0");
  require(options.growth >= 1, "growth", options.growth, "of at least 1");
  require(options.backoff > 0 && options.backoff < 1, "backoff", options.backoff,
          "between 0 and 1");
  require(options.interval >= 1, "interval", static_cast<double>(options.interval),
          "of at least 1");
  require(options.smallest > 0 && options.smallest <= options.initial, "smallest scale",
          options.smallest, "above 0, up to the first scale");
}

LossScaler::LossScaler(const LossScaleOptions& options)
    : options_(options), scale_(options.initial) {
  require_valid(options);
}

void LossScaler::update(bool finite) {
  if (!finite) {
    scale_ *= options_.backoff;
    good_steps_ = 0;
    return;
  }
  if (++good_steps_ < options_.interval) return;
  good_steps_ = 0;
  if (scale_ * options_.growth <= kLargest) scale_ *= options_.growth;
}

void LossScaler::visit_state(NumberVisitor& numbers) {
  numbers.number(scale_);
  numbers.require(scale_ > 0 && scale_ <= kLargest);
  numbers.count(good_steps_);
}

}  // namespace rubato
