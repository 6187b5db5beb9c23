#include <utility>

#include <fmt/format.h>

#include <rubato/loop/observers.hpp>
#include <rubato/loop/trainer.hpp>

#include "loop/train/checks/checked_metrics.hpp"

namespace rubato {

namespace {

constexpr std::string_view kPatience = "patience";

PatienceOptions with_mode(PatienceOptions options, const WatchedMetric& metric) {
  options.mode = metric.mode();
  return options;
}

}  // namespace

EarlyStopping::EarlyStopping(WatchedMetric metric, PatienceOptions options)
    : metric_(std::move(metric)), patience_(with_mode(options, metric_)) {}

void EarlyStopping::on_added(Training& training) {
  require_known(metric_, training.options().metrics);
}

void EarlyStopping::on_epoch(Training& training, const EpochRecord& epoch) {
  const std::optional<double> value = value_of(metric_, epoch);
  if (!value || !patience_.is_over_after(*value)) return;
  training.stop(fmt::format("{} no longer improves", metric_.name()));
}

void EarlyStopping::visit_state(StateVisitor& state, const Training& training) {
  static_cast<void>(training);
  state.numbers(kPatience, patience_, "a patience");
}

}  // namespace rubato
