#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/core/number.hpp>
#include <rubato/scaling/loss_scaler.hpp>

namespace rubato {

namespace {

// Losses are scaled in float32.
constexpr double kLargest = std::numeric_limits<float>::max();

void require(bool holds, std::string_view what, double value, std::string_view accepted) {
  if (holds && std::isfinite(value)) return;
  throw Error(fmt::format("loss scaling: {} {}: accepted are values {}", what, value, accepted));
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

std::vector<double> LossScaler::state() const {
  return {scale_, static_cast<double>(good_steps_)};
}

void LossScaler::load_state(std::span<const double> state) {
  if (state.size() != 2 || !(state[0] > 0) || !(state[0] <= kLargest)) {
    throw Error("the state of the loss scale is damaged");
  }
  scale_ = state[0];
  good_steps_ = count_of(state[1]);
}

}  // namespace rubato
