#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/parse.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/numbers/lr_schedule.hpp>

namespace rubato {

struct PatienceOptions {
  /// The number of values without improvement that exhausts patience, at least 1.
  std::int64_t patience = 5;
  /// The smallest difference to the best that counts as an improvement, at least 0.
  double delta = 0;
  MetricMode mode = MetricMode::min;
};

/// Decides when a metric has stopped improving. An infinite or NaN value is not an improvement.
class Patience {
 public:
  /// Throws Error for an option out of range.
  explicit Patience(const PatienceOptions& options);

  /// Takes the next value. Returns true once patience is exhausted.
  bool is_over_after(double value);
  /// Returns whether the last value was better than all before it.
  [[nodiscard]] bool improved() const { return waited_ == 0 && best_.has_value(); }
  [[nodiscard]] std::optional<double> best() const { return best_; }

  /// Visits all that it has seen so far.
  void visit_state(NumberVisitor& numbers);

 private:
  PatienceOptions options_;
  std::optional<double> best_;
  std::int64_t waited_ = 0;
  bool over_ = false;
};

/// Ends a training when a metric has not improved for some epochs.
class EarlyStopping final : public Observer {
 public:
  /// The metric determines `mode` of the options.
  EarlyStopping(WatchedMetric metric, PatienceOptions options);

  [[nodiscard]] std::string_view name() const override { return "early-stopping"; }
  /// Throws Error if the trainer does not have the metric.
  void on_added(Training& training) override;
  void on_epoch(Training& training, const EpochRecord& epoch) override;
  void visit_state(StateVisitor& state, const Training& training) override;
  [[nodiscard]] const Patience& patience() const { return patience_; }

 private:
  WatchedMetric metric_;
  Patience patience_;
};

/// Keeps a copy of the parameters and buffers as they were after the epoch with the best value of a
/// metric.
class BestWeights final : public Observer {
 public:
  /// Calls `on_better`, if there is one, whenever the copies change.
  explicit BestWeights(WatchedMetric metric,
                       std::function<void(const BestWeights&)> on_better = {});

  [[nodiscard]] std::string_view name() const override { return "best-weights"; }
  /// Throws Error if the trainer does not have the metric.
  void on_added(Training& training) override;
  void on_epoch(Training& training, const EpochRecord& epoch) override;
  void visit_state(StateVisitor& state, const Training& training) override;

  /// Empty before the first epoch.
  [[nodiscard]] const std::vector<NamedArray>& parameters() const { return parameters_.arrays(); }
  [[nodiscard]] const std::vector<NamedArray>& buffers() const { return buffers_.arrays(); }
  [[nodiscard]] std::optional<double> value() const { return best_.best(); }
  [[nodiscard]] EpochIndex epoch() const { return epoch_; }

 private:
  WatchedMetric metric_;
  std::function<void(const BestWeights&)> on_better_;
  Patience best_;
  EpochIndex epoch_;
  ArrayCopies parameters_;
  ArrayCopies buffers_;
};

/// A monitor's statistics of one tensor.
struct TensorStatistics {
  std::string name;
  /// True for the parameter's gradient, false for the parameter.
  bool gradient = false;
  /// The Euclidean norm.
  double norm = 0;
  double mean = 0;
  double min = 0;
  double max = 0;
};

[[nodiscard]] TensorStatistics statistics_of(const NamedArray& named, bool gradient);

/// Returns the parameters whose name matches the shell pattern. Throws Error if none does.
[[nodiscard]] std::vector<NamedArray> matching(std::span<const NamedArray> parameters,
                                               const std::string& pattern);

/// Computes statistics of parameters and of mean gradients at regular steps, before the update.
class Monitor final : public Observer {
 public:
  using Sink = std::function<void(const StepPlan& step, std::span<const TensorStatistics> tensors)>;

  /// Watches the parameters whose name matches the shell pattern, at the steps 0, `every`, 2
  /// `every`, ... Throws Error if `every` is below 1 or `sink` is empty.
  Monitor(std::string pattern, std::int64_t every, Sink sink);

  /// Throws Error if no parameter matches.
  void on_added(Training& training) override;
  [[nodiscard]] bool wants_gradients(const StepPlan& step) const override;
  void on_gradients(Training& training, const StepPlan& step,
                    std::span<const NamedArray> gradients) override;

 private:
  std::string pattern_;
  std::int64_t every_;
  Sink sink_;
};

}  // namespace rubato
