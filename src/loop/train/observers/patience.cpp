#include <cmath>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/observers.hpp>

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
  const bool better = std::isfinite(value) && (!best_ || sign * (value - *best_) > options_.delta);
  if (better) {
    best_ = value;
    waited_ = 0;
  } else if (++waited_ >= options_.patience) {
    over_ = true;
  }
  return over_;
}

void Patience::visit_state(NumberVisitor& numbers) {
  numbers.optional(best_);
  numbers.count(waited_);
  numbers.flag(over_);
}

}  // namespace rubato
