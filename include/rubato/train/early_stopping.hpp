#pragma once

#include <rubato/train/metric.hpp>
#include <rubato/train/patience.hpp>
#include <rubato/train/trainer.hpp>

namespace rubato {

/// Stops a trainer when a metric has not improved for some epochs.
class EarlyStopping final : public Observer {
 public:
  /// `mode` of the options is set by the metric.
  EarlyStopping(Trainer& trainer, Metric metric, PatienceOptions options);

  void on_epoch(const EpochRecord& epoch) override;
  void save(State& state) const override;
  void load(const State& state) override;
  [[nodiscard]] const Patience& patience() const { return patience_; }

 private:
  Trainer& trainer_;
  Metric metric_;
  Patience patience_;
};

}  // namespace rubato
