#pragma once

#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/loop/objective.hpp>

#include "libtorch/model/replica/random_stream.hpp"
#include "libtorch/model/replica/replica.hpp"
#include "step_buffers.hpp"

namespace rubato {

/// Forward and backward of minibatches by one replica. All that it is made with outlives it.
class ForwardBackward {
 public:
  ForwardBackward(const Loss& loss, const Dataset& dataset, const TorchOptions& options)
      : loss_(loss), dataset_(dataset), options_(options) {}

  /// The loss of the minibatch; its gradients, times the loss scale, are added to `gradients`.
  double run(Replica& replica, const Minibatch& minibatch, const std::vector<at::Tensor>& gradients,
             EvaluatorProgress& progress);

 private:
  double in_full(Replica& replica, const Batch& batch, EvaluatorProgress& progress) const;
  double in_half(Replica& replica, Batch batch, double loss_scale,
                 EvaluatorProgress& progress) const;

  const Loss& loss_;
  const Dataset& dataset_;
  const TorchOptions& options_;
  RandomStream random_;
};

/// The evaluator of a model of libtorch.
///
/// T is float or double.
template <class T>
class TorchEvaluator final : public Evaluator<T> {
 public:
  TorchEvaluator(ForwardBackward forward_backward, Replica& replica, StepBuffers<T>& buffers,
                 const FlatLayout& layout)
      : forward_backward_(std::move(forward_backward)),
        replica_(replica),
        buffers_(buffers),
        layout_(layout),
        number_(buffers.add_evaluator()) {}

  double evaluate(const Minibatch& minibatch, const Leaf<T>& leaf,
                  EvaluatorProgress& progress) override {
    const double loss = forward_backward_.run(replica_, minibatch, views_of(leaf), progress);
    if (minibatch.loss_scale != 1) {
      // What overflowed stays infinite, or becomes NaN.
      const T factor = static_cast<T>(1 / minibatch.loss_scale);
      for (T& value : leaf.gradient) value *= factor;
    }
    buffers_.note(replica_, minibatch, number_, leaf.averaged);
    return loss;
  }

 private:
  // The gradient as one view for each parameter. Made when the leaf's memory is first seen.
  const std::vector<at::Tensor>& views_of(const Leaf<T>& leaf) {
    const auto buffer = static_cast<std::size_t>(leaf.buffer);
    if (buffer >= views_.size()) views_.resize(buffer + 1);
    if (views_[buffer].empty()) views_[buffer] = layout_.views(leaf.gradient.data());
    return views_[buffer];
  }

  ForwardBackward forward_backward_;
  Replica& replica_;
  StepBuffers<T>& buffers_;
  const FlatLayout& layout_;
  int number_;
  std::vector<std::vector<at::Tensor>> views_;
};

}  // namespace rubato
