#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include <rubato/numbers/lr_schedule.hpp>

namespace rubato {

/// A schedule without a state: a function of the position.
class LambdaSchedule final : public LrSchedule {
 public:
  explicit LambdaSchedule(std::function<double(double position)> factor)
      : factor_(std::move(factor)) {}
  [[nodiscard]] double factor(double position) const override { return factor_(position); }

 private:
  std::function<double(double position)> factor_;
};

enum class ThresholdMode { relative, absolute };

struct ReduceOnPlateauOptions {
  MetricMode mode = MetricMode::min;
  /// The factor on the rate at each reduction, in (0, 1).
  double factor = 0.1;
  /// Tolerated observations without improvement; the next one reduces the rate.
  std::int64_t patience = 10;
  /// The smallest improvement over the best that counts: relative to the best, or absolute.
  double threshold = 1e-4;
  ThresholdMode threshold_mode = ThresholdMode::relative;
  /// Observations after a reduction that are ignored.
  std::int64_t cooldown = 0;
  /// The lower bound of the factor.
  double floor = 0;
};

/// Lowers the rate when a metric has stopped improving, as torch's ReduceLROnPlateau does.
class ReduceOnPlateau final : public LrSchedule {
 public:
  /// Throws Error for an option out of its range.
  explicit ReduceOnPlateau(const ReduceOnPlateauOptions& options = {});

  [[nodiscard]] double factor(double) const override { return factor_; }
  void observe(double metric) override;
  [[nodiscard]] bool watches() const override { return true; }
  void visit_state(NumberVisitor& numbers) override;

 private:
  [[nodiscard]] bool improves(double metric) const;

  ReduceOnPlateauOptions options_;
  double factor_ = 1;
  std::optional<double> best_;
  std::int64_t bad_ = 0;
  std::int64_t cooldown_left_ = 0;
};

}  // namespace rubato
