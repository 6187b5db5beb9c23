#include <cmath>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/core/number.hpp>
#include <rubato/train/patience.hpp>

namespace rubato {

Patience::Patience(const PatienceOptions& options) : options_(options) {
  if (options.patience < 1) {
    throw Error(fmt::format("patience {}: at least 1 is needed", options.patience));
  }
  if (!(options.delta >= 0)) {
    throw Error(
        fmt::format("delta {} of a metric: accepted are values of at least 0", options.delta));
  }
}

bool Patience::is_over_after(double value) {
  const double sign = options_.mode == MetricMode::min ? -1 : 1;
  const bool better = best_ ? sign * (value - *best_) > options_.delta : !std::isnan(value);
  if (better) {
    best_ = value;
    waited_ = 0;
  } else if (++waited_ >= options_.patience) {
    over_ = true;
  }
  return over_;
}

std::vector<double> Patience::state() const {
  return {best_ ? 1.0 : 0.0, best_.value_or(0), static_cast<double>(waited_), over_ ? 1.0 : 0.0};
}

void Patience::load_state(std::span<const double> state) {
  constexpr std::size_t kNumbers = 4;
  if (state.size() != kNumbers) throw Error("the state of a patience is damaged");
  best_ = state[0] == 0 ? std::nullopt : std::optional(state[1]);
  waited_ = count_of(state[2]);
  over_ = state[3] != 0;
}

}  // namespace rubato
