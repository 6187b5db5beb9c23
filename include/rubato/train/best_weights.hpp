#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include <rubato/state/named_array.hpp>
#include <rubato/train/metric.hpp>
#include <rubato/train/observer.hpp>
#include <rubato/train/patience.hpp>

namespace rubato {

/// Keeps a copy of the parameters and buffers as they were after the epoch with the best value of a
/// metric.
class BestWeights final : public Observer {
 public:
  /// Calls `on_better`, if there is one, whenever they change.
  explicit BestWeights(WatchedMetric metric,
                       std::function<void(const BestWeights&)> on_better = {});

  [[nodiscard]] std::string_view name() const override { return "best-weights"; }
  /// Throws Error where the trainer does not have the metric.
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

}  // namespace rubato
