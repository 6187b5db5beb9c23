#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <rubato/steps/batch_policy.hpp>

#include "batch_bounds.hpp"
#include "throughput_fit.hpp"

namespace rubato {

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
