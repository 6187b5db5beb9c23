#include <fmt/format.h>

#include <rubato/train/early_stopping.hpp>

namespace rubato {

namespace {

constexpr std::string_view kPatience = "patience";

PatienceOptions with_mode(PatienceOptions options, Metric metric) {
  options.mode = mode_of(metric);
  return options;
}

}  // namespace

EarlyStopping::EarlyStopping(Metric metric, PatienceOptions options)
    : metric_(metric), patience_(with_mode(options, metric)) {}

void EarlyStopping::on_epoch(Training& training, const EpochRecord& epoch) {
  const std::optional<double> value = value_of(metric_, epoch);
  if (!value || !patience_.is_over_after(*value)) return;
  training.stop(fmt::format("{} no longer improves", choice_name(kMetrics, metric_)));
}

void EarlyStopping::save(State& state) const {
  state.put(kPatience, patience_.state());
}

void EarlyStopping::load(const Training& training, const State& state) {
  static_cast<void>(training);
  patience_.load_state(state.values<double>(kPatience));
}

}  // namespace rubato
