#include "torch_evaluator.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/core/stopwatch.hpp>

#include "autocast.hpp"
#include "gather.hpp"
#include "model/half.hpp"
#include "operators/operators.hpp"

namespace rubato {

namespace {

void require_differentiable(const at::Tensor& loss) {
  if (loss.dim() != 0 || !loss.requires_grad()) {
    throw Error(
        fmt::format("the loss of a minibatch must be one differentiable number; it has {} "
                    "dimension{} and {} gradient",
                    loss.dim(), loss.dim() == 1 ? "" : "s", loss.requires_grad() ? "a" : "no"));
  }
}

}  // namespace

double ForwardBackward::run(Replica& replica, const Minibatch& minibatch,
                            const std::vector<at::Tensor>& gradients, EvaluatorProgress& progress) {
  const RandomStream::Scope random = random_.begin(minibatch.stream);
  // Whatever the caller of fit() has switched off.
  const at::AutoGradMode with_gradients(true);
  const OperatorScope operators(options_.operators);
  replica.begin(gradients);
  const Stopwatch data;
  progress.phase = Phase::data;
  at::Tensor input = gather(dataset_.inputs, minibatch.samples);
  if (options_.augment) input = options_.augment(input);
  const at::Tensor target = gather(dataset_.targets, minibatch.samples);
  progress.data_seconds += data.seconds();
  const double loss = options_.precision == Precision::fp16
                          ? in_half(replica, input, target, minibatch.loss_scale, progress.phase)
                          : in_full(replica, input, target, progress.phase);
  replica.check_gradients(gradients);
  return loss;
}

double ForwardBackward::in_full(Replica& replica, const at::Tensor& input, const at::Tensor& target,
                                Phase& phase) const {
  at::Tensor loss;
  {
    // Backward follows the types of forward by itself.
    const AutocastGuard autocast(options_.precision == Precision::bf16);
    phase = Phase::forward;
    const at::Tensor output = replica.forward(input);
    phase = Phase::loss;
    loss = loss_(output, target);
  }
  require_differentiable(loss);
  phase = Phase::backward;
  loss.backward();
  return loss.item<double>();
}

// The model in float16, from its inputs to its outputs and back; the loss in between, and its
// scaling, in float32.
double ForwardBackward::in_half(Replica& replica, at::Tensor& input, const at::Tensor& target,
                                double loss_scale, Phase& phase) const {
  round_to_half(input);
  at::Tensor output;
  phase = Phase::forward;
  {
    const HalfStorage storage(true);
    output = replica.forward(input);
  }
  phase = Phase::loss;
  const at::Tensor of_loss = output.detach().requires_grad_();
  const at::Tensor loss = loss_(of_loss, target);
  require_differentiable(loss);
  phase = Phase::backward;
  (loss * loss_scale).backward();
  round_to_half(of_loss.grad());
  const HalfStorage storage(true);
  output.backward(of_loss.grad());
  return loss.item<double>();
}

}  // namespace rubato
