#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <rubato/numbers/lr_schedule.hpp>

namespace rubato {

// The schedules here are functions of the position x alone. Lengths are in the unit of x and above
// 0; constructors throw Error for arguments out of range.

/// The null schedule: factor = value.
class ConstantSchedule final : public LrSchedule {
 public:
  explicit ConstantSchedule(double value = 1);
  [[nodiscard]] double factor(double position) const override;

 private:
  double value_;
};

/// factor = gamma^floor(x / every).
class StepSchedule final : public LrSchedule {
 public:
  StepSchedule(double every, double gamma);
  [[nodiscard]] double factor(double position) const override;

 private:
  double every_;
  double gamma_;
};

/// factor = gamma^(number of milestones at or below x). The milestones must ascend.
class MultiStepSchedule final : public LrSchedule {
 public:
  MultiStepSchedule(std::vector<double> milestones, double gamma);
  [[nodiscard]] double factor(double position) const override;

 private:
  std::vector<double> milestones_;
  double gamma_;
};

/// factor = floor + (1 - floor) (1 - x / total)^power up to x = total, then floor.
class PolynomialSchedule final : public LrSchedule {
 public:
  PolynomialSchedule(double total, double power, double floor = 0);
  [[nodiscard]] double factor(double position) const override;

 private:
  double total_;
  double power_;
  double floor_;
};

/// factor = floor + (1 - floor) (1 + cos(pi x / total)) / 2 up to x = total, then floor (Loshchilov
/// and Hutter 2017, "SGDR", without restarts).
class CosineSchedule final : public LrSchedule {
 public:
  explicit CosineSchedule(double total, double floor = 0);
  [[nodiscard]] double factor(double position) const override;

 private:
  double total_;
  double floor_;
};

/// factor = gamma^x.
class ExponentialSchedule final : public LrSchedule {
 public:
  explicit ExponentialSchedule(double gamma);
  [[nodiscard]] double factor(double position) const override;

 private:
  double gamma_;
};

/// factor = start + (1 - start) x / length up to x = length, then 1 (Goyal et al. 2017, section
/// 2.2).
class WarmupSchedule final : public LrSchedule {
 public:
  explicit WarmupSchedule(double length, double start = 0);
  [[nodiscard]] double factor(double position) const override;

 private:
  double length_;
  double start_;
};

/// A linear warm-up from 0, followed by the cosine until `total`, which must be above `warmup`.
class WarmupCosineSchedule final : public LrSchedule {
 public:
  WarmupCosineSchedule(double warmup, double total);
  [[nodiscard]] double factor(double position) const override;

 private:
  WarmupSchedule warmup_;
  CosineSchedule cosine_;
  double begin_;
};

/// A user's schedule, given as a function.
class LambdaSchedule final : public LrSchedule {
 public:
  explicit LambdaSchedule(std::function<double(double position)> factor)
      : factor_(std::move(factor)) {}
  [[nodiscard]] double factor(double position) const override { return factor_(position); }

 private:
  std::function<double(double position)> factor_;
};

/// Wraps another schedule so that its position 0 is at `begin`; before that the factor is its value
/// at 0.
class DelayedSchedule final : public LrSchedule {
 public:
  DelayedSchedule(std::unique_ptr<LrSchedule> schedule, double begin);
  [[nodiscard]] double factor(double position) const override;
  void observe(double metric) override { schedule_->observe(metric); }
  [[nodiscard]] bool watches() const override { return schedule_->watches(); }
  void visit_state(NumberVisitor& numbers) override { schedule_->visit_state(numbers); }

 private:
  std::unique_ptr<LrSchedule> schedule_;
  double begin_;
};

/// The product of several schedules.
class ChainedSchedule final : public LrSchedule {
 public:
  explicit ChainedSchedule(std::vector<std::unique_ptr<LrSchedule>> schedules)
      : schedules_(std::move(schedules)) {}
  [[nodiscard]] double factor(double position) const override;
  void observe(double metric) override;
  [[nodiscard]] bool watches() const override;
  void visit_state(NumberVisitor& numbers) override;

 private:
  std::vector<std::unique_ptr<LrSchedule>> schedules_;
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
