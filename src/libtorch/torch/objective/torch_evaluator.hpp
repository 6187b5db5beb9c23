#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/loop/objective.hpp>

#include "libtorch/model/dispatch_scopes.hpp"
#include "libtorch/model/replica.hpp"
#include "step_buffers.hpp"

namespace rubato {

/// Computes forward and backward of minibatches by one replica. The arguments must outlive it.
class ForwardBackward {
 public:
  ForwardBackward(const Loss& loss, const Dataset& dataset, const TorchOptions& options)
      : loss_(loss), dataset_(dataset), options_(options) {}

  struct Result {
    double loss = 0;
    /// Sum of the weights, if the loss is a weighted sum.
    std::optional<double> weight{};
    /// Factor by which the added gradients have to be multiplied to be those of the loss.
    double gradient_factor = 1;
  };
  /// Returns the loss of the minibatch, and adds its gradients to `gradients`.
  Result run(Replica& replica, const Minibatch& minibatch, const std::vector<at::Tensor>& gradients,
             EvaluatorProgress& progress);

 private:
  Result in_full(Replica& replica, const Batch& batch, EvaluatorProgress& progress) const;
  Result in_half(Replica& replica, Batch batch, double loss_scale,
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
    GradientViews& views = views_of(leaf);
    const auto result = forward_backward_.run(replica_, minibatch, views.tensors, progress);
    if (result.gradient_factor != 1) {
      // Overflowed gradients stay infinite, or become NaN.
      const T factor = static_cast<T>(result.gradient_factor);
      for (T& value : leaf.gradient) value *= factor;
    }
    if (leaf.weight != nullptr) *leaf.weight = result.weight;
    buffers_.note(replica_, minibatch, number_, leaf.averaged.first(buffers_.size()));
    note_reached(views, leaf.averaged.subspan(buffers_.size()));
    return result.loss;
  }

 private:
  // The gradient as one view for each parameter.
  struct GradientViews {
    std::vector<at::Tensor> tensors{};
    // Version counters after the last minibatch in this memory.
    std::vector<std::uint32_t> versions{};
  };

  // Returns the views of a leaf's memory, which are made when it is first seen.
  GradientViews& views_of(const Leaf<T>& leaf) {
    const auto buffer = static_cast<std::size_t>(leaf.buffer);
    if (buffer >= views_.size()) views_.resize(buffer + 1);
    GradientViews& views = views_[buffer];
    if (views.tensors.empty()) {
      views.tensors = layout_.views(leaf.gradient.data());
      views.versions.resize(views.tensors.size());
    }
    return views;
  }

  // Writes 1 for each parameter that backward has reached: even a gradient of 0 is added in place,
  // and libtorch counts these writes.
  static void note_reached(GradientViews& views, std::span<T> reached) {
    for (std::size_t i = 0; i < views.tensors.size(); ++i) {
      const std::uint32_t version =
          views.tensors[i].unsafeGetTensorImpl()->version_counter().current_version();
      if (std::exchange(views.versions[i], version) != version) reached[i] = 1;
    }
  }

  ForwardBackward forward_backward_;
  Replica& replica_;
  StepBuffers<T>& buffers_;
  const FlatLayout& layout_;
  int number_;
  // Views by the number of the leaf's memory.
  std::vector<GradientViews> views_;
};

}  // namespace rubato
