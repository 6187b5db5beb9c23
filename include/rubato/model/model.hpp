#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rubato {

/// A tensor of a model and the name it has there ("conv1.weight").
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// One instance of a model, as the trainer sees it: a function and the tensors it works on.
///
/// The tensors are those of the instance, not copies: the trainer redirects their storage.
struct Model {
  /// Maps a batch of inputs to a batch of outputs, differentiably.
  std::function<at::Tensor(const at::Tensor& input)> forward;
  /// Switches between training and evaluation (batch normalisation, dropout).
  std::function<void(bool training)> set_training;
  /// In the order of their declaration. Floating-point, all of one type.
  std::vector<NamedTensor> parameters;
  /// Running statistics and the like.
  std::vector<NamedTensor> buffers;
};

/// Makes a new instance of a model; called once for each thread. The initial values are those of
/// the first instance.
using ModelFactory = std::function<Model()>;

/// Maps the outputs of a minibatch and its targets to a scalar: the mean loss of its samples.
using Loss = std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target)>;

}  // namespace rubato
