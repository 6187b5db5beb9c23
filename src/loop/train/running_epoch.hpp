#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include <rubato/base/state.hpp>
#include <rubato/loop/records.hpp>
#include <rubato/steps/plan.hpp>
#include <rubato/steps/walk.hpp>

namespace rubato {

/// The epoch in training, as far as the walk does not know it.
class RunningEpoch {
 public:
  /// The epoch of the walk, with what `trace`, if there is one, says of it in advance.
  RunningEpoch(const Walk& walk, std::optional<Planner>& trace)
      : minibatch_(static_cast<double>(walk.planner().options().minibatch_size)),
        start_{.index = walk.epoch(),
               .first_step = walk.first_step(),
               .samples = walk.planner().samples_per_epoch()} {
    if (!trace) return;
    const std::int64_t samples = start_.samples;
    trace->go_to(walk.epoch(), walk.first_step(), walk.samples_before());
    const std::optional<EpochPlan> plan = trace->next();
    if (!plan) return;
    start_ = start_of(*plan, trace->options());
    whole_steps_ = start_.steps;
    if (!plan->complete) {
      *whole_steps_ += (samples - start_.samples) / plan->steps.back().batch_size;
    }
  }

  [[nodiscard]] const EpochStart& start() const { return start_; }
  /// The number of steps that the whole epoch would have, if it is known.
  [[nodiscard]] const std::optional<std::int64_t>& whole_steps() const { return whole_steps_; }
  [[nodiscard]] double train_seconds() const { return train_seconds_; }
  void add_seconds(double seconds) { train_seconds_ += seconds; }

  /// Adds the mean loss of that number of its samples, each of which has that weight, if the loss
  /// has weights. A NaN loss does not count.
  void add_loss(std::int64_t samples, double loss, const std::optional<double>& weight) {
    if (std::isnan(loss)) return;
    loss_samples_ += samples;
    const double part = weight ? *weight * static_cast<double>(samples) : minibatches_of(samples);
    loss_sum_ += loss * part;
    if (weight) loss_weight_ = loss_weight_.value_or(0) + part;
  }
  [[nodiscard]] double mean_loss() const {
    return loss_sum_ / loss_weight_.value_or(minibatches_of(loss_samples_));
  }

  void visit_state(StateVisitor& state) {
    state.count("epoch.loss_samples", loss_samples_);
    state.value("epoch.loss_sum", loss_sum_);
    state.optional("epoch.loss_weight", loss_weight_);
    state.value("epoch.train_seconds", train_seconds_);
  }

 private:
  [[nodiscard]] double minibatches_of(std::int64_t samples) const {
    return static_cast<double>(samples) / minibatch_;
  }

  // Samples of a minibatch.
  double minibatch_;
  EpochStart start_;
  std::optional<std::int64_t> whole_steps_;
  double train_seconds_ = 0;
  // The loss sum adds up each step's mean loss times its minibatches in this epoch, or times their
  // weight, which is then summed, too. The samples of these minibatches are counted.
  double loss_sum_ = 0;
  std::optional<double> loss_weight_{};
  std::int64_t loss_samples_ = 0;
};

}  // namespace rubato
