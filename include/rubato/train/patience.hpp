#pragma once

#include <cstdint>
#include <optional>

#include <rubato/core/number.hpp>
#include <rubato/scaling/metric.hpp>

namespace rubato {

struct PatienceOptions {
  /// Values without improvement until patience is exhausted, at least 1.
  std::int64_t patience = 5;
  /// The smallest difference to the best that counts as an improvement, at least 0.
  double delta = 0;
  MetricMode mode = MetricMode::min;
};

/// Decides when a metric has stopped improving. NaN is no improvement.
class Patience {
 public:
  /// Throws Error for an option out of its range.
  explicit Patience(const PatienceOptions& options);

  /// Takes the next value. True once patience is exhausted.
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
