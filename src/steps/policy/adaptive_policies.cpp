// decide() only reads what observe() has collected, so a decision may be asked for several times;
// logarithms and exponentials come from exact::, so it is the same on every machine.
// NoiseScalePolicy averages the logarithm of the noise scale and compares its target with the last
// batch. GoodputPolicy averages the seconds of each shape of a step and refits its model whenever a
// mean changes. It then searches all numbers of cores and, for each, the number of minibatches by
// bisection, as the goodput has only one maximum (best_on()).

#include "adaptive_policies.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include <rubato/steps/step_plan.hpp>

#include "base/core/portable_math.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

BatchBounds::BatchBounds(std::int64_t least, std::int64_t most, std::int64_t minibatch_size,
                         std::array<std::string_view, 2> names)
    : least_((least + minibatch_size - 1) / minibatch_size),
      most_(most / minibatch_size),
      minibatch_size_(minibatch_size) {
  if (least_ <= most_) return;
  throw_error(
      "no multiple of the minibatch size, {}, lies between {}={} and {}={}; accepted: bounds that "
      "have one between them",
      minibatch_size, names[0], least, names[1], most);
}

std::int64_t BatchBounds::nearest(double samples) const {
  const double minibatches = samples / static_cast<double>(minibatch_size_);
  // The comparison comes before the rounding, which cannot represent numbers beyond 64 bits.
  if (minibatches >= static_cast<double>(most_)) return most_;
  return std::clamp<std::int64_t>(std::llround(minibatches), least_, most_);
}

TraceStep BatchBounds::step_of(std::int64_t minibatches, std::optional<std::int64_t> cores) const {
  TraceStep step{.batch_size = minibatches * minibatch_size_};
  if (cores) step.cores = std::min(*cores, minibatches);
  return step;
}

namespace {

constexpr std::string_view kLogNoise = "log_noise";
constexpr std::string_view kMeasured = "measured";
constexpr std::string_view kLast = "last";
constexpr std::string_view kStayed = "stayed";

}  // namespace

std::string NoiseScalePolicy::name() const {
  return fmt::format(
      "noise-scale of {} to {} minibatches of {} by factor {} smoothing {} change {} every {} wait "
      "{}",
      bounds_.least(), bounds_.most(), bounds_.minibatch_size(), options_.factor,
      options_.smoothing, options_.change, options_.every, options_.wait);
}

double NoiseScalePolicy::target() const {
  const auto minibatch = static_cast<double>(bounds_.minibatch_size());
  return std::clamp(options_.factor * exact::exp(log_noise_.value()),
                    static_cast<double>(bounds_.least()) * minibatch,
                    static_cast<double>(bounds_.most()) * minibatch);
}

std::int64_t NoiseScalePolicy::minibatches(const TraceStep& offered) const {
  if (measured_ == 0 || measured_ < options_.wait) {
    return bounds_.nearest(static_cast<double>(offered.batch_size));
  }
  const auto batch = static_cast<double>(last_ * bounds_.minibatch_size());
  const double wanted = target();
  const double room = 1 + options_.change;
  const bool stays = wanted <= batch * room && wanted * room >= batch;
  return stays || stayed_ < options_.every ? last_ : bounds_.nearest(wanted);
}

BatchDecision NoiseScalePolicy::decide(const TraceStep& offered,
                                       const SourceProgress& progress) const {
  BatchDecision decision{.step = bounds_.step_of(minibatches(offered), offered.cores)};
  if (progress.noise_scale) {
    decision.inputs.push_back({.name = "noise_scale", .value = *progress.noise_scale});
  }
  if (measured_ > 0) decision.inputs.push_back({.name = "target", .value = target()});
  return decision;
}

void NoiseScalePolicy::observe(const ObservedStep& step) {
  // The end of training may have shortened the step.
  const std::int64_t taken =
      std::max(minibatches_of(step.step.batch_size, bounds_.minibatch_size()), bounds_.least());
  stayed_ = taken == last_ ? stayed_ + 1 : 1;
  last_ = taken;
  if (!step.after.noise_scale) return;
  // A noise scale below a sample is rounding.
  log_noise_.add(exact::log(std::max(1.0, *step.after.noise_scale)), options_.smoothing,
                 Averaging::debiased);
  ++measured_;
}

void NoiseScalePolicy::visit_state(StateVisitor& state) {
  struct LogNoise {
    MovingAverage& average;
    void visit_state(NumberVisitor& numbers) { average.visit_debiased(numbers); }
  } log_noise{log_noise_};
  state.numbers(kLogNoise, log_noise, "the policy of the noise scale");
  state.count(kMeasured, measured_);
  state.count(kLast, last_);
  state.count(kStayed, stayed_);
  state.require(std::ranges::all_of(numbers_of(log_noise),
                                    [](double number) { return std::isfinite(number); }) &&
                    (last_ == 0 || (last_ >= bounds_.least() && last_ <= bounds_.most())),
                "the policy of the noise scale");
}

namespace {

constexpr std::string_view kShapes = "shapes";
constexpr std::string_view kSeconds = "seconds";
constexpr std::string_view kModel = "model";
constexpr std::string_view kLastBatch = "last_batch";
// The numbers of a shape in a state: cores, minibatches, and how often it was seen.
constexpr std::size_t kOfShape = 3;

}  // namespace

std::string GoodputPolicy::name() const {
  return fmt::format(
      "goodput of {} to {} minibatches of {} reference {} cores-per-host {} threshold {}",
      bounds_.least(), bounds_.most(), bounds_.minibatch_size(), options_.reference_batch_size,
      options_.cores_per_host, options_.threshold);
}

double GoodputPolicy::efficiency(std::int64_t minibatches, double noise) const {
  const auto batch = static_cast<double>(minibatches * bounds_.minibatch_size());
  return (noise + static_cast<double>(options_.reference_batch_size)) / (noise + batch);
}

GoodputPolicy::Candidate GoodputPolicy::candidate(std::int64_t minibatches, std::int64_t cores,
                                                  double noise) const {
  const double seconds =
      model_->seconds(StepShape::of(minibatches, cores), options_.cores_per_host);
  const auto batch = static_cast<double>(minibatches * bounds_.minibatch_size());
  return {.minibatches = minibatches,
          .cores = cores,
          .goodput = batch / seconds * efficiency(minibatches, noise)};
}

// Either all cores have equally many minibatches, s, or the batch is the largest: with fewer on
// some cores the step would take as long. As s grows, the goodput rises to one maximum, because s
// times the derivative of the logarithm of T (phi + M) / M, which is
//
//     slope s T_grad^(gamma - 1) / T^gamma + M / (phi + M) - 1,     M = s cores minibatch,
//
// never falls.
GoodputPolicy::Candidate GoodputPolicy::best_on(std::int64_t cores, double noise) const {
  const auto of_each = [&](std::int64_t load) { return candidate(load * cores, cores, noise); };
  std::int64_t low = (bounds_.least() + cores - 1) / cores;
  const std::int64_t most = bounds_.most() / cores;
  const Candidate largest = candidate(bounds_.most(), cores, noise);
  if (low > most) return largest;
  std::int64_t high = most;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (of_each(middle + 1).goodput > of_each(middle).goodput) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const Candidate found = of_each(low);
  return largest.goodput > found.goodput ? largest : found;
}

GoodputPolicy::Candidate GoodputPolicy::best(std::int64_t most_cores, double noise) const {
  Candidate best;
  for (std::int64_t cores = 1; cores <= std::min(most_cores, bounds_.most()); ++cores) {
    const Candidate other = best_on(cores, noise);
    if (other.goodput > best.goodput) best = other;
  }
  return best;
}

GoodputPolicy::Candidate GoodputPolicy::best_of(std::int64_t minibatches, std::int64_t most_cores,
                                                double noise) const {
  Candidate best;
  for (std::int64_t cores = 1; cores <= std::min(most_cores, minibatches); ++cores) {
    const Candidate other = candidate(minibatches, cores, noise);
    if (other.goodput > best.goodput) best = other;
  }
  return best;
}

std::optional<std::int64_t> GoodputPolicy::exploring(std::int64_t cores) const {
  if (observed_.empty()) return std::nullopt;
  const std::int64_t known = observed_.begin()->first.minibatches;
  for (const auto& [shape, mean] : observed_) {
    if (shape.minibatches != known) return std::nullopt;
  }
  for (const std::int64_t load : {2 * known, known / 2}) {
    if (load < 1) continue;
    const std::int64_t minibatches = std::clamp(load * cores, bounds_.least(), bounds_.most());
    if (StepShape::of(minibatches, cores).minibatches != known) return minibatches;
  }
  return std::nullopt;
}

BatchDecision GoodputPolicy::decide(const TraceStep& offered,
                                    const SourceProgress& progress) const {
  if (!offered.cores) {
    throw_error(
        "the policy {} depends on cores, and none are offered; accepted: steps with their cores",
        name());
  }
  const std::int64_t cores = *offered.cores;
  BatchDecision decision;
  const auto note = [&](const char* name, double value) {
    decision.inputs.push_back({.name = name, .value = value});
  };
  if (progress.noise_scale) note("noise_scale", *progress.noise_scale);
  if (model_) {
    note("gradient_base", model_->gradient_base);
    note("gradient_slope", model_->gradient_slope);
    note("host_base", model_->host_base);
    note("host_slope", model_->host_slope);
    note("network_base", model_->network_base);
    note("network_slope", model_->network_slope);
    note("gamma", model_->gamma);
    note("fit_error", fit_error_);
  }
  const auto on_all = [&](std::int64_t minibatches) {
    decision.step = bounds_.step_of(minibatches, cores);
    return decision;
  };
  if (const auto minibatches = exploring(cores)) return on_all(*minibatches);
  if (!model_ || !progress.noise_scale) {
    return on_all(bounds_.nearest(static_cast<double>(options_.reference_batch_size)));
  }
  const double noise = std::max(0.0, *progress.noise_scale);
  Candidate chosen = best(cores, noise);
  const Candidate kept = best_of(last_, cores, noise);
  if (chosen.goodput <= (1 + options_.threshold) * kept.goodput) chosen = kept;
  note("step_seconds",
       model_->seconds(StepShape::of(chosen.minibatches, chosen.cores), options_.cores_per_host));
  note("efficiency", efficiency(chosen.minibatches, noise));
  note("goodput", chosen.goodput);
  decision.step = bounds_.step_of(chosen.minibatches, chosen.cores);
  return decision;
}

void GoodputPolicy::observe(const ObservedStep& step) {
  if (!step.seconds || !(*step.seconds > 0) || !std::isfinite(*step.seconds) || !step.step.cores) {
    throw_error(
        "the policy {} depends on how long steps take on how many cores; accepted: a source with a "
        "clock of modelled time",
        name());
  }
  const std::int64_t minibatches = minibatches_of(step.step.batch_size, bounds_.minibatch_size());
  // The end of training may have shortened the step.
  last_ = std::max(minibatches, bounds_.least());
  const auto [place, is_new] = observed_.try_emplace(StepShape::of(minibatches, *step.step.cores));
  Mean& mean = place->second;
  const double before = mean.seconds;
  ++mean.count;
  mean.seconds += (*step.seconds - mean.seconds) / static_cast<double>(mean.count);
  // A modelled clock gives a shape the same time again and again.
  if (!is_new && mean.seconds == before) return;
  StepSeconds seconds;
  for (const auto& [shape, one] : observed_) seconds.emplace(shape, one.seconds);
  model_ = fit_throughput(seconds, options_.cores_per_host);
  fit_error_ = fit_error(*model_, seconds, options_.cores_per_host);
}

void GoodputPolicy::visit_state(StateVisitor& state) {
  constexpr std::string_view kDamaged = "the policy of goodput";
  // The observations are a map here, and two arrays in a state.
  std::vector<std::int64_t> shapes;
  std::vector<double> seconds;
  for (const auto& [shape, mean] : observed_) {
    shapes.insert(shapes.end(), {shape.cores, shape.minibatches, mean.count});
    seconds.push_back(mean.seconds);
  }
  state.list(kShapes, shapes);
  state.list(kSeconds, seconds);
  state.count(kLastBatch, last_);
  if (state.loading()) {
    observed_.clear();
    state.require(shapes.size() == kOfShape * seconds.size(), kDamaged);
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      const StepShape shape{.cores = shapes[kOfShape * i], .minibatches = shapes[kOfShape * i + 1]};
      const Mean mean{.seconds = seconds[i], .count = shapes[kOfShape * i + 2]};
      const bool good = shape.cores >= 1 && shape.minibatches >= 1 && mean.count >= 1 &&
                        mean.seconds > 0 && std::isfinite(mean.seconds);
      state.require(good && observed_.emplace(shape, mean).second, kDamaged);
    }
    state.require(
        observed_.empty() ? last_ == 0 : last_ >= bounds_.least() && last_ <= bounds_.most(),
        kDamaged);
  }
  // The model is not fitted again, so that it is the same on any machine.
  const bool fitted = state.has(kModel, model_.has_value());
  state.require(fitted != observed_.empty(), kDamaged);
  if (state.loading()) model_ = fitted ? std::optional(ThroughputModel{}) : std::nullopt;
  if (!fitted) return;
  struct Fit {
    double& error;
    ThroughputModel& model;
    void visit_state(NumberVisitor& numbers) {
      numbers.number(error);
      model.visit_state(numbers);
    }
  } fit{fit_error_, *model_};
  state.numbers(kModel, fit, "the model of the time of steps");
}

}  // namespace rubato
