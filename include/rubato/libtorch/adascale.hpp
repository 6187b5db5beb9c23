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
  /// Number of workers that each run backward on a share of the batch, at least 1.
  std::int64_t world_size = 1;
  /// Sums a tensor over the workers, in place; needed for a world size above 1. The gradients
  /// themselves have to be the mean over the workers when step() is called, as DDP leaves them.
  std::function<void(at::Tensor&)> all_reduce_sum{};
  /// Number of backward passes of this worker in a step, at least 1. World size times it must be at
  /// least 2: a single gradient says nothing about the variance.
  std::int64_t num_gradients_to_accumulate = 1;
  /// Batch size relative to the one for which the learning rate was tuned, above 0; by default the
  /// number of gradients in a step.
  std::optional<double> scale{};
  /// Smoothing of the averages, in [0, 1); by default max(1 - gradients in a step / 1000, 0).
  std::optional<double> smoothing{};
  /// AdaScaleOptions::smallest_variance; the default is fairscale's. Empty makes it relative to the
  /// gradients, as in the trainer's rule. That is right for small gradients, too, for which the
  /// default floor makes the gain equal to the scale.
  std::optional<double> smallest_variance = 1e-6;
  /// Every loss is divided by num_gradients_to_accumulate, as fairscale assumes, too. If this is
  /// false, step() divides the gradients, unless scale_grad_by_num_grads_to_accum() already has.
  bool is_scaled_loss = true;
  /// Selects Averaging::debiased; false selects Averaging::mean_first.
  bool debias_ewma = true;
};

/// AdaScale around any optimizer of libtorch, for the user's own training loop: the interface that
/// users of fairscale's AdaScale know. The estimates are those of AdaScaleEstimator, as in the
/// trainer's rule.
///
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
/// docs/techniques.md has a table of the differences from fairscale's.
///
/// It measures by hooks on the parameters: every backward pass counts. A step is measured when its
/// last backward pass ends, so that gradients may be clipped before step(). With several workers
/// the gradients are means only when the caller has made them so: the step is then measured by the
/// first gain() or step(), and gain() has to be called before clipping. Misuse is an Error; one
/// backward pass too many throws it from backward(). Not to be used by two threads at once; the
/// optimizer must outlive it.
class AdaScale {
 public:
  /// Throws Error for an option out of its range, and for a single gradient in a step.
  explicit AdaScale(torch::optim::Optimizer& optimizer, const AdaScaleLoopOptions& options = {});
  /// Removes the hooks.
  ~AdaScale();
  AdaScale(const AdaScale&) = delete;
  AdaScale& operator=(const AdaScale&) = delete;

  /// The gain of all parameter groups together, or of one group. It is the gain of this step if all
  /// its backward passes are done, or else of the step before; 1 before the first step (min(1,
  /// scale) for a scale below 1). Throws Error for a group that does not exist.
  [[nodiscard]] double gain();
  [[nodiscard]] double gain(std::size_t group);
  [[nodiscard]] double scale() const { return scale_; }
  [[nodiscard]] double smoothing() const;
  [[nodiscard]] const AdaScaleEstimator& estimator() const { return estimator_; }

  /// Sets the scale from the next step on. `update_estimate` rescales the average variance as
  /// fairscale does; by default it stays, as in the paper (AdaScaleOptions::rescale_variance).
  /// Throws Error in the middle of an accumulation.
  void set_scale(double scale, bool update_estimate = false);
  /// Sets the number from the next step on. `update_smoothing` sets the smoothing to its default
  /// for the new number of gradients. The scale stays. Throws Error in the middle of an
  /// accumulation.
  void set_num_gradients_to_accumulate(std::int64_t count, bool update_smoothing = true);

  /// Multiplies the learning rate of each group by its gain, lets the optimizer step, and restores
  /// the learning rates. Throws Error before all backward passes of the step are done, and for a
  /// parameter group that was added to the optimizer itself.
  void step();
  /// Does the same with a closure that clears the gradients, runs all backward passes of the step
  /// and returns the loss, which step() returns. It is called once, with gradients enabled, and the
  /// gain of its gradients is that of this step. Throws Error if a backward pass of the step is
  /// done already. Not for optimizers that evaluate a closure several times in a step (LBFGS).
  at::Tensor step(const torch::optim::Optimizer::LossClosure& closure);
  /// Divides the gradients by num_gradients_to_accumulate; step() then does not. Throws Error
  /// before all backward passes of the step are done, with is_scaled_loss, and a second time in a
  /// step.
  void scale_grad_by_num_grads_to_accum();
  /// Clears the gradients. If no step() has come before, this drops all backward passes since the
  /// last step, as after an overflow; they leave nothing in the estimates.
  void zero_grad();
  /// Adds a parameter group to the optimizer, measured from the next step on. Throws Error in the
  /// middle of an accumulation.
  void add_param_group(const torch::optim::OptimizerParamGroup& group);

  /// All state as bytes: the averages, scale, smoothing, number of gradients to accumulate, and the
  /// optimizer's state. load_state_dict() restores it, and throws Error for bytes that are not such
  /// a state. Both throw Error in the middle of an accumulation.
  [[nodiscard]] std::string state_dict() const;
  void load_state_dict(const std::string& bytes);

  /// Removes the hooks: from here on backward passes do not count, and step() is an Error.
  void unhook();

 private:
  // A parameter and its backward passes in this step.
  struct Parameter {
    at::Tensor tensor;
    std::size_t group = 0;
    unsigned hook = 0;
    std::int64_t backwards = 0;
  };

  void hook_group(std::size_t group);
  void note(std::size_t parameter, const at::Tensor& gradient);
  void require_between_steps(std::string_view what) const;
  // The largest number of backward passes of any parameter in this step.
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
  // Restores the estimates from before measure().
  void forget_measurement();
  void divide_gradients();
  void reset();

  torch::optim::Optimizer& optimizer_;
  AdaScaleLoopOptions options_;
  double scale_;
  AdaScaleEstimator estimator_;
  std::vector<Parameter> parameters_;
  // Sum of the squares of this worker's gradients, for each group.
  std::vector<double> squares_;
  // Number of gradients of a last backward pass, and how many of them norms_ includes.
  std::int64_t last_gradients_ = 0;
  std::int64_t known_gradients_ = 0;
  // Norms of each group at the end of the last backward pass; empty before.
  std::vector<GradientNorms> norms_;
  // The estimator before this step was measured; empty while the step is not measured.
  std::optional<AdaScaleEstimator> before_;
  // The gradients of the step have been divided.
  bool divided_ = false;
  bool hooked_ = true;
};

}  // namespace rubato
