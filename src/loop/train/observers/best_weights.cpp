#include <utility>

#include <rubato/loop/observers.hpp>
#include <rubato/loop/trainer.hpp>

#include "loop/train/checks/checked_metrics.hpp"

namespace rubato {

namespace {

constexpr std::string_view kBestParameter = "parameter.";
constexpr std::string_view kBestBuffer = "buffer.";

}  // namespace

BestWeights::BestWeights(WatchedMetric metric, std::function<void(const BestWeights&)> on_better)
    : metric_(std::move(metric)),
      on_better_(std::move(on_better)),
      best_({.mode = metric_.mode()}) {}

void BestWeights::on_added(Training& training) {
  require_known(metric_, training.options().metrics);
}

void BestWeights::on_epoch(Training& training, const EpochRecord& epoch) {
  const std::optional<double> value = value_of(metric_, epoch);
  if (!value) return;
  static_cast<void>(best_.is_over_after(*value));
  if (!best_.improved()) return;
  epoch_ = epoch.epoch;
  parameters_ = ArrayCopies(training.parameters());
  buffers_ = ArrayCopies(training.buffers());
  if (on_better_) on_better_(*this);
}

void BestWeights::visit_state(StateVisitor& state, const Training& training) {
  state.numbers("patience", best_, "a patience");
  state.count("epoch", epoch_);
  if (state.loading()) {
    parameters_ = best_.best() ? ArrayCopies(training.parameters()) : ArrayCopies();
    buffers_ = best_.best() ? ArrayCopies(training.buffers()) : ArrayCopies();
  }
  for (const NamedArray& array : parameters()) visit_array(state, kBestParameter, array);
  for (const NamedArray& array : buffers()) visit_array(state, kBestBuffer, array);
}

}  // namespace rubato
