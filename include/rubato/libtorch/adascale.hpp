#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <rubato/numbers/adascale_estimator.hpp>

namespace rubato {

struct AdaScaleLoopOptions {
  /// Workers that each run backward on a share of the batch, at least 1.
  std::int64_t world_size = 1;
  /// Sums a tensor over the workers, in place; needed for a world size above 1. The gradients
  /// themselves are to be the mean over the workers when step() is called, as DDP leaves them.
  std::function<void(at::Tensor&)> all_reduce_sum{};
  /// Backward passes of this worker in a step, at least 1. World size times it must be at least 2:
  /// of one gradient nothing can be said of the variance.
  std::int64_t num_gradients_to_accumulate = 1;
  /// Batch size relative to that for which the learning rate was tuned, above 0; by default the
  /// number of gradients in a step.
  std::optional<double> scale{};
  /// Of the averages, in [0, 1); by default max(1 - gradients in a step / 1000, 0).
  std::optional<double> smoothing{};
  /// AdaScaleOptions::smallest_variance; by default as fairscale has it. Empty is relative to the
  /// gradients, as in the trainer's rule: right for small gradients, too, where this floor makes
  /// the gain the scale.
  std::optional<double> smallest_variance = 1e-6;
  /// Whether every loss is divided by num_gradients_to_accumulate, as fairscale assumes, too. Where
  /// it is not, step() divides the gradients, unless scale_grad_by_num_grads_to_accum() has.
  bool is_scaled_loss = true;
  /// Averaging::debiased, or else Averaging::mean_first.
  bool debias_ewma = true;
};

/// AdaScale around any optimizer of libtorch, for a training loop of one's own: the interface that
/// users of fairscale's AdaScale know. The estimates are those of AdaScaleEstimator, as in the
/// trainer's rule.
///
///     torch::optim::SGD sgd(model->parameters(), 0.1);
///     rubato::AdaScale optimizer(sgd, {.num_gradients_to_accumulate = 4});
///     for (std::int64_t step = 0; step < steps; ++step) {
///       optimizer.zero_grad();
///       for (const auto& [input, target] : four_batches) {
///         (loss(model->forward(input), target) / 4).backward();
///       }
///       optimizer.step();
///     }
///
/// docs/techniques.md has a table of what differs from fairscale's.
///
/// It measures by hooks on the parameters: every backward pass counts. A step is measured when its
/// last backward pass ends, so that gradients may be clipped before step(). Those of several
/// workers are means only when the caller has made them so: then it is the first gain() or step()
/// that measures, and gain() is to be called before clipping. Misuse is an Error, thrown from
/// backward() where that is the one call too many. Not to be used by two threads at once; the
/// optimizer must outlive it.
class AdaScale {
 public:
  /// Throws Error for an option out of its range, and for a single gradient in a step.
  explicit AdaScale(torch::optim::Optimizer& optimizer, const AdaScaleLoopOptions& options = {});
  /// Takes the hooks away.
  ~AdaScale();
  AdaScale(const AdaScale&) = delete;
  AdaScale& operator=(const AdaScale&) = delete;

  /// The gain of all parameter groups together, or of one: of this step where all its backward
  /// passes are done, else of the step before; 1 before the first (min(1, scale) for a scale below
  /// 1). Throws Error for a group that there is not.
  [[nodiscard]] double gain();
  [[nodiscard]] double gain(std::size_t group);
  [[nodiscard]] double scale() const { return scale_; }
  [[nodiscard]] double smoothing() const;
  [[nodiscard]] const AdaScaleEstimator& estimator() const { return estimator_; }

  /// From the next step on. `update_estimate` rescales the average variance as fairscale does; by
  /// default it stays, as in the paper (AdaScaleOptions::rescale_variance). Throws Error in the
  /// middle of an accumulation.
  void set_scale(double scale, bool update_estimate = false);
  /// From the next step on. `update_smoothing` sets the smoothing to its default for the new number
  /// of gradients. The scale stays. Throws Error in the middle of an accumulation.
  void set_num_gradients_to_accumulate(std::int64_t count, bool update_smoothing = true);

  /// Multiplies the learning rate of each group by its gain, lets the optimizer step, and restores
  /// the learning rates. Throws Error before all backward passes of the step are done.
  void step();
  /// The same with a closure that clears the gradients, runs all backward passes of the step and
  /// returns the loss, which step() returns. It is called once, with gradients enabled, and the
  /// gain of its gradients is that of this step. Throws Error where a backward pass of the step is
  /// done already. Not for optimizers that evaluate a closure several times in a step (LBFGS).
  at::Tensor step(const torch::optim::Optimizer::LossClosure& closure);
  /// Divides the gradients by num_gradients_to_accumulate; step() then does not. Throws Error
  /// before all backward passes of the step are done, with is_scaled_loss, and a second time in a
  /// step.
  void scale_grad_by_num_grads_to_accum();
  /// Clears the gradients. Without a step() before it, it drops all backward passes since the last
  /// one, as after an overflow; nothing of them remains in the estimates.
  void zero_grad();
  /// Adds a parameter group to the optimizer, measured from the next step on. Throws Error in the
  /// middle of an accumulation.
  void add_param_group(const torch::optim::OptimizerParamGroup& group);

  /// All state as bytes: the averages, scale, smoothing, number of gradients to accumulate, and the
  /// optimizer's. load_state_dict() goes on from there, and throws Error for bytes that are no such
  /// state. Both throw Error in the middle of an accumulation.
  [[nodiscard]] std::string state_dict() const;
  void load_state_dict(const std::string& bytes);

  /// Takes the hooks away: from here on backward passes do not count, and step() is an Error.
  void unhook();

 private:
  // Of one parameter, in one step.
  struct Parameter {
    at::Tensor tensor;
    std::size_t group = 0;
    unsigned hook = 0;
    std::int64_t backwards = 0;
  };

  void hook_group(std::size_t group);
  void note(std::size_t parameter, const at::Tensor& gradient);
  void require_between_steps(std::string_view what) const;
  // The most that any parameter has been through.
  [[nodiscard]] std::int64_t backwards() const;
  [[nodiscard]] std::int64_t gradients_in_step() const {
    return options_.world_size * options_.num_gradients_to_accumulate;
  }
  [[nodiscard]] std::vector<GradientNorms> norms();
  void require_all_backwards(std::string_view what) const;
  // Called when a backward pass ends that may be the last of the step.
  void end_backward();
  // Takes in the gradients of the step when all are there, once.
  void measure();
  // Makes the estimates what they were before measure().
  void forget_measurement();
  void divide_gradients();
  void reset();

  torch::optim::Optimizer& optimizer_;
  AdaScaleLoopOptions options_;
  double scale_;
  AdaScaleEstimator estimator_;
  std::vector<Parameter> parameters_;
  // Of each group: the sum of the squares of this worker's gradients.
  std::vector<double> squares_;
  // How many gradients of a last backward pass there were, and how many norms_ knows of.
  std::int64_t last_gradients_ = 0;
  std::int64_t known_gradients_ = 0;
  // The norms of each group when the last backward pass had ended; empty before.
  std::vector<GradientNorms> norms_;
  // As it was before this step was measured; empty where it is not.
  std::optional<AdaScaleEstimator> before_;
  // Whether the gradients of the step have been divided.
  bool divided_ = false;
  bool hooked_ = true;
};

}  // namespace rubato
