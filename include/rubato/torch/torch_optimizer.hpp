#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <rubato/optim/flat_optimizer.hpp>
#include <rubato/train/own_optimizer.hpp>

namespace rubato {

/// Makes an optimizer of libtorch for these parameter groups, one for each tensor:
///
///     [](std::vector<torch::optim::OptimizerParamGroup> groups) {
///       return std::make_unique<torch::optim::Adam>(std::move(groups));
///     }
using TorchOptimizerMaker = std::function<std::unique_ptr<torch::optim::Optimizer>(
    std::vector<torch::optim::OptimizerParamGroup> groups)>;

/// Any optimizer of libtorch as a FlatOptimizer, on the calling thread. Every tensor is a parameter
/// group of its own, so that groups and layer-wise rules may give each its own rate; the rates in
/// the optimizer's options are overwritten at every step. Rates::weight_decay_factor is not
/// followed.
///
/// T is float or double.
template <class T>
class TorchOptimizer final : public FlatOptimizer<T> {
 public:
  /// The arrays of `trained` must outlive it. Of the groups only the factors on the rate are used;
  /// what else differs is the maker's to set. Throws Error when the optimizer has no learning rate.
  TorchOptimizer(ParameterLayout layout, const std::vector<TrainedArray>& trained,
                 const TorchOptimizerMaker& make, std::vector<GroupOptions> groups = {});

  void step(const Update<T>& update, Workers& workers) override;
  /// As libtorch serialises it.
  void visit_state(StateVisitor& state) override;
  [[nodiscard]] bool follows_sums() const override { return false; }

 private:
  ParameterLayout layout_;
  std::vector<GroupOptions> groups_;
  // The mean gradient, which the gradients of the parameters are views of.
  at::Tensor gradient_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

extern template class TorchOptimizer<float>;
extern template class TorchOptimizer<double>;

/// An optimizer of libtorch of the user's own, for TrainOptions::own_optimizer.
[[nodiscard]] OwnOptimizer torch_optimizer(const TorchOptimizerMaker& make);

}  // namespace rubato
