#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <rubato/base/parse.hpp>
#include <rubato/numbers/lr_schedule.hpp>

namespace rubato {

/// A schedule without a state: a function of the position.
class LambdaSchedule final : public LrSchedule {
 public:
  explicit LambdaSchedule(std::function<double(double position)> factor,
                          std::optional<double> end = {})
      : factor_(std::move(factor)), end_(end) {}
  [[nodiscard]] double factor(double position) const override { return factor_(position); }
  [[nodiscard]] std::optional<double> end() const override { return end_; }

 private:
  std::function<double(double position)> factor_;
  std::optional<double> end_;
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

/// The way from one value to the next.
enum class Annealing { cos, linear };

inline constexpr std::array<Choice<Annealing>, 2> kAnnealings{
    {{Annealing::cos, "cos"}, {Annealing::linear, "linear"}}};

struct OneCycleOptions {
  /// The position at which the rate is highest, above 0, and the end of the cycle, above that.
  double peak = 27;
  double total = 90;
  /// The factors on the rate at the beginning and at the end; it is 1 at the peak.
  double start = 1. / 25;
  double floor = 1. / 25 / 1e4;
  Annealing annealing = Annealing::cos;
  /// True if the rate is back at `start` as long after the peak as it was before it, and falls to
  /// the floor from there, which needs a peak in the first half. False if it falls in one phase.
  bool three_phase = false;
  /// The momentum at the peak, and at the beginning and the end; empty if it does not move.
  struct Momentum {
    double base = 0.85;
    double max = 0.95;
  };
  std::optional<Momentum> momentum = Momentum();
};

/// One cycle (Smith 2018, "A disciplined approach to neural network hyper-parameters: part 1"): the
/// rate rises and then falls to a fraction of where it began, while the momentum moves against it.
/// The values are those of torch's OneCycleLR of N steps if `total` is N - 1 and `peak` is
/// pct_start N - 1. After the end they stay as they are there.
class OneCycle final : public LrSchedule {
 public:
  explicit OneCycle(const OneCycleOptions& options);

  [[nodiscard]] double factor(double position) const override;
  [[nodiscard]] std::optional<double> momentum(double position) const override;
  [[nodiscard]] std::optional<double> end() const override { return turns_.back().position; }

 private:
  // A position at which one phase ends and the next begins.
  struct Turn {
    double position = 0;
    double factor = 0;
    double momentum = 0;
  };

  [[nodiscard]] double between_turns(double position, double Turn::*value) const;

  // In ascending order, the first of them at 0.
  std::vector<Turn> turns_;
  Annealing annealing_;
  bool moves_momentum_;
};

}  // namespace rubato
