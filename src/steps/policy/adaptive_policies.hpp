#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <rubato/numbers/adascale_estimator.hpp>
#include <rubato/steps/batch_policy.hpp>
#include <rubato/steps/trace.hpp>

#include "throughput.hpp"

namespace rubato {

/// The bounds of the batches that a policy decides on, in minibatches.
class BatchBounds {
 public:
  /// Creates bounds from samples: the multiples of the minibatch from `least` to `most`. Throws
  /// Error if there are none; the message gives the bounds these names.
  BatchBounds(std::int64_t least, std::int64_t most, std::int64_t minibatch_size,
              std::array<std::string_view, 2> names = {"min", "max"});

  [[nodiscard]] std::int64_t least() const { return least_; }
  [[nodiscard]] std::int64_t most() const { return most_; }
  [[nodiscard]] std::int64_t minibatch_size() const { return minibatch_size_; }
  /// Samples of the largest batch.
  [[nodiscard]] std::int64_t max_batch() const { return most_ * minibatch_size_; }

  /// The batch nearest to a number of samples, at least 0, in minibatches.
  [[nodiscard]] std::int64_t nearest(double samples) const;
  /// The step of `minibatches` minibatches on the offered cores, or as many as have a minibatch.
  [[nodiscard]] TraceStep step_of(std::int64_t minibatches,
                                  std::optional<std::int64_t> cores) const;

 private:
  std::int64_t least_;
  std::int64_t most_;
  std::int64_t minibatch_size_;
};

struct NoiseScalePolicyOptions {
  /// The factor on the noise scale; above 0.
  double factor = 1;
  /// The smoothing of the average, from 0 to below 1.
  double smoothing = 0.9;
  /// The relative distance of the target from the batch before the batch follows; at least 0.
  double change = 0.2;
  /// The least number of steps for which a batch is kept; at least 1.
  std::int64_t every = 1;
  /// Steps with a noise scale before the batch follows it; at least 0.
  std::int64_t wait = 10;
};

/// The batch follows the gradient noise scale B (McCandlish et al. 2018, "An empirical model of
/// large-batch training", section 2.2: a batch of the noise scale needs twice the minimal number of
/// steps and twice the minimal number of samples):
///
///     target = factor exp(mean of log B over the steps, the last weighing most)
///
/// between the bounds. The mean is of logarithms because B is a ratio, which is occasionally many
/// times too large. The batch becomes the target, rounded to the nearest minibatch, once the target
/// has left
///
///     batch / (1 + change)  to  batch (1 + change)
///
/// and the batch has been kept for `every` steps. Before there have been `wait` noise scales, the
/// offered batch is taken, within the bounds.
class NoiseScalePolicy final : public BatchPolicy {
 public:
  NoiseScalePolicy(const BatchBounds& bounds, const NoiseScalePolicyOptions& options)
      : bounds_(bounds), options_(options) {}

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] BatchDecision decide(const TraceStep& offered,
                                     const SourceProgress& progress) const override;
  void observe(const ObservedStep& step) override;
  [[nodiscard]] std::int64_t max_batch(std::int64_t /*offered*/) const override {
    return bounds_.max_batch();
  }
  [[nodiscard]] bool needs_noise_scale() const override { return true; }
  void visit_state(StateVisitor& state) override;

 private:
  // The target in samples, between the bounds; requires at least one noise scale.
  [[nodiscard]] double target() const;
  [[nodiscard]] std::int64_t minibatches(const TraceStep& offered) const;

  BatchBounds bounds_;
  NoiseScalePolicyOptions options_;
  // The average of the logarithm of the noise scale, and the number of steps in it.
  MovingAverage log_noise_;
  std::int64_t measured_ = 0;
  // Minibatches of the last step, 0 before the first, and the number of consecutive steps with as
  // many.
  std::int64_t last_ = 0;
  std::int64_t stayed_ = 0;
};

struct GoodputPolicyOptions {
  /// The reference batch, M0 below, in samples; at least 1.
  std::int64_t reference_batch_size = 32;
  /// Cores of a host, at least 1.
  std::int64_t cores_per_host = 8;
  /// The relative advantage that another batch must have before it is taken; at least 0.
  double threshold = 0.05;
};

/// Chooses the batch, and the number of cores up to those offered, with the greatest goodput (Qiao
/// et al. 2021, "Pollux: co-adaptive cluster scheduling for goodput-optimized deep learning", OSDI,
/// sections 3.1 and 4.1):
///
///     goodput    = throughput efficiency            samples of the reference batch in a second
///     throughput = M / T                            T: ThroughputModel, fitted to all steps so far
///     efficiency = (phi + M0) / (phi + M)           phi: the gradient noise scale
///
/// The batch is kept while no other has a goodput of more than (1 + threshold) times its own, as in
/// AdaptDL, the paper's implementation.
///
/// Observations of a single number of minibatches do not determine the time of others. So the first
/// step has the reference batch, and the second has twice the minibatches on a core, or half of
/// them if twice is too many. Steps have the reference batch until there is a noise scale.
class GoodputPolicy final : public BatchPolicy {
 public:
  GoodputPolicy(const BatchBounds& bounds, const GoodputPolicyOptions& options)
      : bounds_(bounds), options_(options) {}

  [[nodiscard]] std::string name() const override;
  /// Throws Error if no cores are offered.
  [[nodiscard]] BatchDecision decide(const TraceStep& offered,
                                     const SourceProgress& progress) const override;
  /// Throws Error for a step without its seconds.
  void observe(const ObservedStep& step) override;
  [[nodiscard]] std::int64_t max_batch(std::int64_t /*offered*/) const override {
    return bounds_.max_batch();
  }
  [[nodiscard]] bool needs_noise_scale() const override { return true; }
  [[nodiscard]] bool needs_seconds() const override { return true; }
  void visit_state(StateVisitor& state) override;

 private:
  // A possible step and its goodput.
  struct Candidate {
    std::int64_t minibatches = 0;
    std::int64_t cores = 0;
    double goodput = 0;
  };
  // The mean of `count` durations.
  struct Mean {
    double seconds = 0;
    std::int64_t count = 0;
  };

  [[nodiscard]] double efficiency(std::int64_t minibatches, double noise) const;
  [[nodiscard]] Candidate candidate(std::int64_t minibatches, std::int64_t cores,
                                    double noise) const;
  // The best candidate on exactly `cores` cores; on at most `most_cores`; and of one batch on
  // these.
  [[nodiscard]] Candidate best_on(std::int64_t cores, double noise) const;
  [[nodiscard]] Candidate best(std::int64_t most_cores, double noise) const;
  [[nodiscard]] Candidate best_of(std::int64_t minibatches, std::int64_t most_cores,
                                  double noise) const;
  // Minibatches of a step that would reveal how the time depends on minibatches; empty if that is
  // known, or there is no such step.
  [[nodiscard]] std::optional<std::int64_t> exploring(std::int64_t cores) const;

  BatchBounds bounds_;
  GoodputPolicyOptions options_;
  std::map<StepShape, Mean> observed_;
  // The model fitted to the observations; empty without any.
  std::optional<ThroughputModel> model_;
  double fit_error_ = 0;
  // Minibatches of the last step; 0 before the first.
  std::int64_t last_ = 0;
};

}  // namespace rubato
