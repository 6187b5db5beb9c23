#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <rubato/numbers/lr_schedule.hpp>

namespace rubato {

// The schedules that are functions of the position x alone. Lengths are in the unit of x and above
// 0; constructors throw Error for what is out of its range.

/// factor = value. The null schedule.
class ConstantSchedule final : public LrSchedule {
 public:
  explicit ConstantSchedule(double value = 1);
  [[nodiscard]] double factor(double position) const override;

 private:
  double value_;
};

/// factor = gamma^floor(x / every)
class StepSchedule final : public LrSchedule {
 public:
  StepSchedule(double every, double gamma);
  [[nodiscard]] double factor(double position) const override;

 private:
  double every_;
  double gamma_;
};

/// factor = gamma^(milestones at or below x). The milestones ascend.
class MultiStepSchedule final : public LrSchedule {
 public:
  MultiStepSchedule(std::vector<double> milestones, double gamma);
  [[nodiscard]] double factor(double position) const override;

 private:
  std::vector<double> milestones_;
  double gamma_;
};

/// factor = floor + (1 - floor) (1 - x / total)^power, floor from x = total on.
class PolynomialSchedule final : public LrSchedule {
 public:
  PolynomialSchedule(double total, double power, double floor = 0);
  [[nodiscard]] double factor(double position) const override;

 private:
  double total_;
  double power_;
  double floor_;
};

/// factor = floor + (1 - floor) (1 + cos(pi x / total)) / 2, floor from x = total on (Loshchilov
/// and Hutter 2017, "SGDR", without restarts).
class CosineSchedule final : public LrSchedule {
 public:
  explicit CosineSchedule(double total, double floor = 0);
  [[nodiscard]] double factor(double position) const override;

 private:
  double total_;
  double floor_;
};

/// factor = gamma^x
class ExponentialSchedule final : public LrSchedule {
 public:
  explicit ExponentialSchedule(double gamma);
  [[nodiscard]] double factor(double position) const override;

 private:
  double gamma_;
};

/// factor = start + (1 - start) x / length, 1 from x = length on (Goyal et al. 2017, section 2.2).
class WarmupSchedule final : public LrSchedule {
 public:
  explicit WarmupSchedule(double length, double start = 0);
  [[nodiscard]] double factor(double position) const override;

 private:
  double length_;
  double start_;
};

/// A linear warm-up from 0, and the cosine over what is left until `total`, which is above
/// `warmup`.
class WarmupCosineSchedule final : public LrSchedule {
 public:
  WarmupCosineSchedule(double warmup, double total);
  [[nodiscard]] double factor(double position) const override;

 private:
  WarmupSchedule warmup_;
  CosineSchedule cosine_;
  double begin_;
};

/// A schedule of the user's own.
class LambdaSchedule final : public LrSchedule {
 public:
  explicit LambdaSchedule(std::function<double(double position)> factor)
      : factor_(std::move(factor)) {}
  [[nodiscard]] double factor(double position) const override { return factor_(position); }

 private:
  std::function<double(double position)> factor_;
};

/// Another schedule whose 0 is at `begin`; before it, what that gives at 0.
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

}  // namespace rubato
