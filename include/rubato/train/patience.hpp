#pragma once

#include <cstdint>
#include <optional>

#include <rubato/core/number.hpp>
#include <rubato/scaling/metric.hpp>

namespace rubato {

struct PatienceOptions {
  /// Values without improvement after which it is over, at least 1.
  std::int64_t patience = 5;
  /// By how much more than the best a value has to be better, at least 0.
  double delta = 0;
  MetricMode mode = MetricMode::min;
};

/// Decides when a metric has stopped improving. NaN is no improvement.
class Patience {
 public:
  /// Throws Error for an option out of its range.
  explicit Patience(const PatienceOptions& options);

  /// Takes in the next value. True from the value on at which patience is at its end.
  bool is_over_after(double value);
  /// Whether the last value was better than all before it.
  [[nodiscard]] bool improved() const { return waited_ == 0 && best_.has_value(); }
  [[nodiscard]] std::optional<double> best() const { return best_; }

  /// What it has learned so far.
  void visit_state(NumberVisitor& numbers);

 private:
  PatienceOptions options_;
  std::optional<double> best_;
  std::int64_t waited_ = 0;
  bool over_ = false;
};

}  // namespace rubato
