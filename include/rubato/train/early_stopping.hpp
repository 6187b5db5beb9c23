#pragma once

#include <string_view>

#include <rubato/train/metric.hpp>
#include <rubato/train/observer.hpp>
#include <rubato/train/patience.hpp>

namespace rubato {

/// Ends a training when a metric has not improved for some epochs.
class EarlyStopping final : public Observer {
 public:
  /// `mode` of the options is set by the metric.
  EarlyStopping(WatchedMetric metric, PatienceOptions options);

  [[nodiscard]] std::string_view name() const override { return "early-stopping"; }
  /// Throws Error where the trainer does not have the metric.
  void on_added(Training& training) override;
  void on_epoch(Training& training, const EpochRecord& epoch) override;
  void visit_state(StateVisitor& state, const Training& training) override;
  [[nodiscard]] const Patience& patience() const { return patience_; }

 private:
  WatchedMetric metric_;
  Patience patience_;
};

}  // namespace rubato
