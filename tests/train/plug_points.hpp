#pragma once

// The fragments of docs/extending.md, which quotes this file: extending_test.cpp compares the two,
// and runs them.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rubato/loop/reducer.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/steps/availability.hpp>
#include <rubato/steps/modelled_time.hpp>
#include <rubato/steps/random.hpp>

namespace rubato::test {

// A rule.
inline void use_log_rule(TrainOptions& options) {
  RuleRegistry rules;
  rules.add("log2", [](const RuleInput& step) { return 1 + std::log2(step.scale()); });
  options.rule = rules.choose("log2");
}

// A rule that answers more than the rate.
inline void use_short_memory(TrainOptions& options) {
  RuleRegistry rules;
  rules.add("root-short", [](const RuleInput& step) {
    const double factor = std::sqrt(step.scale());
    Rates rates = Rule::scaled(step, factor);
    rates.weight_decay_factor = factor;
    if (step.optimizer.beta2) rates.optimizer.beta2 = 1 - std::min(1.0, step.scale() * 0.001);
    return rates;
  });
  options.rule = rules.choose("root-short");
}

// A schedule.
class InverseTime final : public LrSchedule {
 public:
  double factor(double position) const override { return 1 / (1 + position); }
};

inline void use_inverse_time(TrainOptions& options) {
  options.own_schedule = [] { return std::make_unique<InverseTime>(); };
  options.schedule_unit = ScheduleUnit::steps;
}

// An optimizer.
class SignDescent final : public FlatOptimizer<double> {
 public:
  void step(const Update<double>& update, Workers& workers) override {
    workers.for_each_range(update.parameters.size(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        if (update.gradient_sum[i] == 0) continue;
        update.parameters[i] -= std::copysign(update.rates.learning_rate, update.gradient_sum[i]);
      }
    });
  }
  void visit_state(StateVisitor&) override {}
};

inline void use_sign_descent(TrainOptions& options) {
  options.own_optimizer.of_double = [](const OptimizerParts&) {
    return std::make_unique<SignDescent>();
  };
}

// A policy.
inline std::unique_ptr<StepSource> growing_batches() {
  const auto policy = [](const SourceProgress& so_far) -> std::optional<TraceStep> {
    const std::int64_t minibatches = std::min<std::int64_t>(1 + so_far.epoch.value(), 4);
    return TraceStep{.batch_size = 4 * minibatches, .cores = minibatches};
  };
  return std::make_unique<FunctionSource>(policy, FunctionSourceOptions{.max_batch = 16});
}

// A sampler.
inline Sampler rotated(std::int64_t shift) {
  return {.name = "rotated by " + std::to_string(shift), .order = [shift](const EpochDraw& draw) {
            std::vector<std::int64_t> list(static_cast<std::size_t>(draw.samples));
            for (std::size_t i = 0; i < list.size(); ++i) {
              list[i] = (static_cast<std::int64_t>(i) + shift * draw.epoch.value()) % draw.samples;
            }
            return list;
          }};
}

// A gradient transform that remembers nothing.
inline OwnGradientTransform gaussian_noise(double deviation) {
  return function_transform(
      "noise " + std::to_string(deviation), [deviation](const auto& gradient, Workers& workers) {
        using T = typename std::decay_t<decltype(gradient.values)>::value_type;
        const NormalNumbers normal(gradient.stream);
        workers.for_each_range(gradient.values.size(), [&](std::size_t begin, std::size_t end) {
          for (std::size_t i = begin; i < end; ++i) {
            gradient.values[i] += static_cast<T>(deviation * normal[i]);
          }
        });
      });
}

// And one that does.
template <class T>
class LargestOnly final : public GradientTransform<T> {
 public:
  LargestOnly(std::size_t kept, std::size_t size) : kept_(kept), left_(size), sizes_(size) {}

  void apply(const StepGradient<T>& gradient, Workers&) override {
    const auto size = static_cast<std::ptrdiff_t>(left_.size());
    for (std::size_t i = 0; i < left_.size(); ++i) {
      gradient.values[i] += std::exchange(left_[i], T{0});
      sizes_[i] = std::abs(gradient.values[i]);
    }
    const auto nth = sizes_.begin() + size - static_cast<std::ptrdiff_t>(kept_);
    std::nth_element(sizes_.begin(), nth, sizes_.end());
    for (std::size_t i = 0; i < left_.size(); ++i) {
      if (std::abs(gradient.values[i]) < *nth) std::swap(left_[i], gradient.values[i]);
    }
  }
  void visit_state(StateVisitor& state) override { state.values("left", std::span<T>(left_)); }

 private:
  std::size_t kept_;
  std::vector<T> left_;
  std::vector<T> sizes_;
};

inline OwnGradientTransform largest_only(std::size_t kept) {
  return {.name = "largest " + std::to_string(kept),
          .of_float =
              [kept](const TransformParts& parts) {
                return std::make_unique<LargestOnly<float>>(kept, parts.layout.size());
              },
          .of_double =
              [kept](const TransformParts& parts) {
                return std::make_unique<LargestOnly<double>>(kept, parts.layout.size());
              }};
}

// A reducer.
template <class T>
class PairwiseReducer final : public Reducer<T> {
 public:
  explicit PairwiseReducer(const ReducerSize& size)
      : Reducer<T>(size), sums_(static_cast<std::size_t>(size.max_leaves)) {}

  void begin_step(std::int64_t leaves, std::int64_t) override {
    leaves_ = static_cast<std::size_t>(leaves);
  }
  void reduce_core(std::int64_t, const LeafShare& share,
                   const typename Reducer<T>::NextLeaf& next) override {
    for (std::int64_t i = 0; i < share.count; ++i) {
      sums_[static_cast<std::size_t>(share[i])] = next(share[i]);
    }
  }
  PartialSum<T>* finish_step() override {
    for (std::size_t width = 1; width < leaves_; width *= 2) {
      for (std::size_t left = 0; left + width < leaves_; left += 2 * width) {
        this->merge(sums_[left], sums_[left + width]);
      }
    }
    sums_.front()->take_squares(this->norms());
    return sums_.front();
  }

 private:
  std::vector<PartialSum<T>*> sums_;
  std::size_t leaves_ = 0;
};

inline OwnReducer pairwise() {
  return {.name = "pairwise",
          .reproducible = true,
          .of_float = [](const ReducerSize& size,
                         Workers&) { return std::make_unique<PairwiseReducer<float>>(size); },
          .of_double = [](const ReducerSize& size,
                          Workers&) { return std::make_unique<PairwiseReducer<double>>(size); }};
}

// A source with a clock.
inline std::unique_ptr<StepSource> on_spot_market() {
  ClockOptions options;
  options.cluster = parse_cluster("substep=0.02,bytes=87360,latency=1e-4,restart=30");
  options.cluster.price.constant = 1.2;
  options.minibatch_size = 4;
  options.max_batch = 48;
  const auto four_samples_each = [](std::int64_t devices, const SourceProgress&) {
    return TraceStep{.batch_size = 4 * devices, .cores = devices};
  };
  return std::make_unique<ClockedSource>(
      generate_availability("spot:most=12,seed=1", TraceEnd::hold), four_samples_each, options);
}

// A batch policy that remembers something.
class FastestCores final : public BatchPolicy {
 public:
  std::string name() const override { return "fastest cores"; }
  BatchDecision decide(const TraceStep& offered, const SourceProgress&) const override {
    const auto tried = static_cast<std::int64_t>(seconds_.size());
    if (tried < *offered.cores) return {.step = {offered.batch_size, tried + 1}};
    const auto end = seconds_.begin() + *offered.cores;
    const auto fastest = std::min_element(seconds_.begin(), end) - seconds_.begin();
    return {.step = {offered.batch_size, fastest + 1}};
  }
  void observe(const ObservedStep& step) override {
    if (*step.step.cores > static_cast<std::int64_t>(seconds_.size())) {
      seconds_.push_back(*step.seconds);
    }
  }
  std::int64_t max_batch(std::int64_t offered) const override { return offered; }
  bool needs_seconds() const override { return true; }
  void visit_state(StateVisitor& state) override { state.list("seconds", seconds_); }

 private:
  // Of a step on one core, on two, and so on.
  std::vector<double> seconds_;
};

inline std::unique_ptr<StepSource> on_the_fastest_cores() {
  TimedSource::Options clock;
  clock.cluster = parse_cluster("substep=0.1,bytes=4000,host-latency=0.03");
  clock.minibatch_size = 4;
  clock.cores = 12;
  return std::make_unique<TimedSource>(std::make_unique<TraceSource>(Trace::constant(48)), clock,
                                       std::make_unique<FastestCores>());
}

// A metric.
inline OwnMetric weight_norm() {
  return {.name = "weight-norm",
          .mode = MetricMode::min,
          .value = [](Training& training, const EpochRecord&) -> std::optional<double> {
            double sum = 0;
            for (const NamedArray& array : training.parameters()) {
              for (const double value : array.values<double>()) sum += value * value;
            }
            return std::sqrt(sum);
          }};
}

// Spans.
class TimeOfActivities {
 public:
  void operator()(const Span& span) {
    const std::lock_guard lock(mutex_);
    seconds_[span.activity] += std::chrono::duration<double>(span.end - span.begin).count();
  }
  double seconds(Activity activity) const { return seconds_.at(activity); }

 private:
  std::mutex mutex_;
  std::map<Activity, double> seconds_;
};

// An observer.
class LossOfSteps final : public Observer {
 public:
  void on_step(Training& training, const StepRecord& step) override {
    losses_.push_back(step.loss);
    if (step.loss < 0.01) training.stop("the loss is small enough");
  }
  const std::vector<double>& losses() const { return losses_; }

 private:
  std::vector<double> losses_;
};

// A trainer and whoever adds an observer share it.
inline std::vector<double> losses_of(Trainer& trainer, TrainResult& result) {
  const auto losses = trainer.add_observer<LossOfSteps>();
  result = trainer.fit();
  return losses->losses();
}

}  // namespace rubato::test
