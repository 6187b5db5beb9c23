#include "torch_evaluator.hpp"

#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "base/core/throw_error.hpp"
#include "libtorch/model/dispatch_scopes.hpp"
#include "libtorch/operators/operators.hpp"
#include "libtorch/torch/guards.hpp"
#include "libtorch/torch/sample_tensors.hpp"

namespace rubato {

namespace {

void require_differentiable(const at::Tensor& loss) {
  if (loss.dim() != 0 || !loss.requires_grad()) {
    throw_error(
        "the loss of a minibatch must be one differentiable number; it has {} dimension{} and {} "
        "gradient",
        loss.dim(), loss.dim() == 1 ? "" : "s", loss.requires_grad() ? "a" : "no");
  }
}

}  // namespace

ForwardBackward::Result ForwardBackward::run(Replica& replica, const Minibatch& minibatch,
                                             const std::vector<at::Tensor>& gradients,
                                             EvaluatorProgress& progress) {
  const RandomStream::Scope random = random_.begin(minibatch.stream);
  // Gradients are on even if the caller of fit() has switched them off.
  const at::AutoGradMode with_gradients(true);
  const OperatorScope operators(options_.operators);
  // Minibatches of a core come to one replica, one after the other.
  if (options_.buffers == BufferUse::local && minibatch.substep > 0) {
    replica.continue_with(gradients);
  } else {
    replica.begin(gradients);
  }
  progress.enter(Phase::data);
  Batch batch = checked_batch(dataset_.batch(minibatch.samples),
                              static_cast<std::int64_t>(minibatch.samples.size()));
  if (options_.augment) batch.inputs.front() = options_.augment(batch.inputs.front());
  const Result result = options_.precision == Precision::fp16
                            ? in_half(replica, std::move(batch), minibatch.loss_scale, progress)
                            : in_full(replica, batch, progress);
  replica.check_gradients(gradients);
  return result;
}

ForwardBackward::Result ForwardBackward::in_full(Replica& replica, const Batch& batch,
                                                 EvaluatorProgress& progress) const {
  const LossValue value = [&] {
    // Backward follows the types of forward by itself.
    const AutocastGuard autocast(options_.precision == Precision::bf16);
    progress.enter(Phase::forward);
    const Tensors outputs = replica.forward(batch.inputs);
    progress.enter(Phase::loss);
    return loss_.value(outputs, batch.targets);
  }();
  const std::optional<double> weight = value.weight_number();
  // A minibatch without weight does not count, whatever its loss is.
  if (weight == 0.0) return {.weight = weight};
  require_differentiable(value.loss);
  progress.enter(Phase::backward);
  value.loss.backward();
  return {.loss = value.loss.item<double>(), .weight = weight};
}

// The model computes in float16, from its inputs to its outputs and back; the loss in between, and
// its scaling, in float32.
ForwardBackward::Result ForwardBackward::in_half(Replica& replica, Batch batch, double loss_scale,
                                                 EvaluatorProgress& progress) const {
  for (at::Tensor& input : batch.inputs) {
    // The input may be a view of the data set's own tensors.
    input = input.clone();
    round_to_half(input);
  }
  Tensors outputs;
  progress.enter(Phase::forward);
  {
    const HalfStorage storage(true);
    outputs = replica.forward(batch.inputs);
  }
  progress.enter(Phase::loss);
  Tensors of_loss;
  of_loss.reserve(outputs.size());
  for (const at::Tensor& output : outputs) {
    of_loss.push_back(output.detach().requires_grad_(output.requires_grad()));
  }
  const LossValue value = loss_.value(of_loss, batch.targets);
  const std::optional<double> weight = value.weight_number();
  if (weight == 0.0) return {.weight = weight};
  require_differentiable(value.loss);
  progress.enter(Phase::backward);
  // The mean is scaled, because a sum would overflow in float16.
  const double scale = loss_scale / weight.value_or(1);
  (value.loss * scale).backward();
  Tensors differentiated;
  Tensors gradients;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    // An output has no gradient if the loss does not depend on it.
    if (!of_loss[i].grad().defined()) continue;
    round_to_half(of_loss[i].grad());
    differentiated.push_back(outputs[i]);
    gradients.push_back(of_loss[i].grad());
  }
  const HalfStorage storage(true);
  torch::autograd::backward(differentiated, gradients);
  return {.loss = value.loss.item<double>(), .weight = weight, .gradient_factor = 1 / scale};
}

}  // namespace rubato
