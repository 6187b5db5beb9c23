// This file has the observers that come with the library, and the look-up and checks of watched
// metrics that they share with the trainer. The observers use nothing but the interface that a
// user's own observer has. EarlyStopping and BestWeights both follow a metric through Patience;
// BestWeights only asks it whether the last value was the best, and copies the weights whose
// test it watches. The statistics of a Monitor are sums in double on the calling thread,
// in the order of the elements, so they do not depend on the number of threads.

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fnmatch.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/loop/observers.hpp>
#include <rubato/loop/trainer.hpp>

#include "base/core/throw_error.hpp"
#include "checked_options.hpp"
#include "loop/train/step/step_part.hpp"

namespace rubato {

std::optional<double> value_of(const WatchedMetric& metric, const EpochRecord& epoch) {
  if (!metric.metric()) {
    const auto found = std::ranges::find(epoch.metrics, metric.name(), &MetricValue::name);
    return found == epoch.metrics.end() ? std::nullopt : std::optional(found->value);
  }
  if (*metric.metric() == Metric::train_loss) return epoch.train_loss;
  const auto other = epoch.other_tests.find(metric.weights());
  const bool is_other = other != epoch.other_tests.end();
  const std::optional<Evaluation>& test = is_other ? other->second : epoch.test;
  if (!test || (!is_other && !metric.weights().empty())) return std::nullopt;
  return *metric.metric() == Metric::test_loss ? test->loss : test->accuracy;
}

void require_metrics(std::span<const OwnMetric> metrics) {
  std::set<std::string_view> names;
  const std::vector<WatchedMetric> built_in = built_in_metrics();
  for (const WatchedMetric& metric : built_in) names.insert(metric.name());
  for (const OwnMetric& metric : metrics) {
    require_name(metric.name, "metric");
    if (!metric.value) {
      throw_error("metric {} has no value; accepted: OwnMetric::value", metric.name);
    }
    if (names.insert(metric.name).second) continue;
    throw_error("two metrics are called {}; accepted: different names", metric.name);
  }
}

namespace {

// Throws Refused for a metric of weights beside the model's that this training does not have.
void require_weights(const WatchedMetric& metric, const TrainOptions& options) {
  if (metric.weights().empty()) return;
  std::string_view why = "there are no weights of that name";
  for (const OtherWeightsInfo& weights : other_weights()) {
    if (weights.name != metric.weights()) continue;
    if (weights.exist(options)) return;
    why = weights.missing;
  }
  throw Refused("watch", fmt::format("{}: {}", metric.name(), why), "with " + metric.weights());
}

}  // namespace

void require_known(const WatchedMetric& metric, const TrainOptions& options) {
  require_weights(metric, options);
  if (metric.metric()) return;
  const auto found = std::ranges::find(options.metrics, metric.name(), &OwnMetric::name);
  if (found == options.metrics.end()) {
    throw_error(
        "metric {} is watched, which the trainer does not have; accepted: one of kMetrics and of "
        "TrainOptions::metrics",
        metric.name());
  }
  if (found->mode == metric.mode()) return;
  throw_error("metric {} is watched as if it were better when it is {}; accepted: {}",
              metric.name(), metric.mode() == MetricMode::min ? "smaller" : "larger",
              choice_name(kMetricModes, found->mode));
}

Patience::Patience(const PatienceOptions& options) : options_(options) {
  if (options.patience < 1) throw_error("patience {}: at least 1 is needed", options.patience);
  if (!(options.delta >= 0)) {
    throw_error("delta {} of a metric: accepted are values of at least 0", options.delta);
  }
}

bool Patience::is_over_after(double value) {
  const double sign = options_.mode == MetricMode::min ? -1 : 1;
  const bool better = std::isfinite(value) && (!best_ || sign * (value - *best_) > options_.delta);
  if (better) {
    best_ = value;
    waited_ = 0;
  } else if (++waited_ >= options_.patience) {
    over_ = true;
  }
  return over_;
}

void Patience::visit_state(NumberVisitor& numbers) {
  numbers.optional(best_);
  numbers.count(waited_);
  numbers.flag(over_);
}

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
  require_known(metric_, training.options());
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

namespace {

constexpr std::string_view kBestParameter = "parameter.";
constexpr std::string_view kBestBuffer = "buffer.";

}  // namespace

BestWeights::BestWeights(WatchedMetric metric, std::function<void(const BestWeights&)> on_better)
    : metric_(std::move(metric)),
      on_better_(std::move(on_better)),
      best_({.mode = metric_.mode()}) {}

void BestWeights::on_added(Training& training) {
  require_known(metric_, training.options());
}

void BestWeights::on_epoch(Training& training, const EpochRecord& epoch) {
  const std::optional<double> value = value_of(metric_, epoch);
  if (!value) return;
  static_cast<void>(best_.is_over_after(*value));
  if (!best_.improved()) return;
  epoch_ = epoch.epoch;
  const auto copy = [&] { parameters_ = ArrayCopies(training.parameters()); };
  // The weights that have the best value are kept.
  metric_.weights().empty() ? copy() : training.with_weights(metric_.weights(), copy);
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

namespace {

// Also reads arrays that are not trained and have another type.
std::vector<double> numbers_of(const NamedArray& array) {
  std::vector<double> numbers(array.size());
  const auto copy = [&](auto values) { std::copy(values.begin(), values.end(), numbers.begin()); };
  switch (array.type) {
    case ElementType::f64:
      copy(array.values<double>());
      break;
    case ElementType::f32:
      copy(array.values<float>());
      break;
    case ElementType::i64:
      copy(array.values<std::int64_t>());
      break;
    default:
      throw_error("'{}' is {}, which a monitor does not read; accepted: F64, F32, I64", array.name,
                  name_of(array.type));
  }
  return numbers;
}

}  // namespace

TensorStatistics statistics_of(const NamedArray& array, bool gradient) {
  const std::vector<double> numbers = numbers_of(array);
  double sum = 0;
  double squares = 0;
  for (const double number : numbers) {
    sum += number;
    squares += number * number;
  }
  const auto [min, max] = std::minmax_element(numbers.begin(), numbers.end());
  return {.name = array.name,
          .gradient = gradient,
          .norm = std::sqrt(squares),
          .mean = sum / static_cast<double>(numbers.size()),
          .min = *min,
          .max = *max};
}

std::vector<NamedArray> matching(std::span<const NamedArray> parameters,
                                 const std::string& pattern) {
  std::vector<NamedArray> matches;
  std::string names;
  for (const NamedArray& named : parameters) {
    names.append(names.empty() ? "" : ", ").append(named.name);
    if (fnmatch(pattern.c_str(), named.name.c_str(), 0) == 0 && named.size() > 0) {
      matches.push_back(named);
    }
  }
  if (matches.empty()) throw_error("no parameter matches '{}'; the model's are {}", pattern, names);
  return matches;
}

Monitor::Monitor(std::string pattern, std::int64_t every, Sink sink)
    : pattern_(std::move(pattern)), every_(every), sink_(std::move(sink)) {
  if (every < 1) throw_error("a monitor every {} steps: at least 1 is needed", every);
  if (!sink_) throw Error("a monitor without a sink; accepted: a function that it calls");
}

void Monitor::on_added(Training& training) {
  static_cast<void>(matching(training.parameters(), pattern_));
}

bool Monitor::wants_gradients(const StepPlan& step) const {
  return step.index.value() % every_ == 0;
}

void Monitor::on_gradients(Training& training, const StepPlan& step,
                           std::span<const NamedArray> gradients) {
  std::vector<TensorStatistics> tensors;
  for (const NamedArray& parameter : matching(training.parameters(), pattern_)) {
    tensors.push_back(statistics_of(parameter, false));
    // A frozen parameter has no gradient.
    const auto gradient =
        std::find_if(gradients.begin(), gradients.end(),
                     [&](const NamedArray& candidate) { return candidate.name == parameter.name; });
    if (gradient != gradients.end()) tensors.push_back(statistics_of(*gradient, true));
  }
  sink_(step, tensors);
}

}  // namespace rubato
