#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rubato {

/// A tensor of a model and the name it has there ("conv1.weight").
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// What becomes of a buffer in a step. Each of the step's minibatches begins with the value before
/// the step and changes it.
enum class BufferCombination {
  /// It moves by the mean of the changes: floating-point buffers of which nothing else is known.
  mean,
  /// It moves by their sum, as counters do: integer buffers. What is bool is toggled where a
  /// minibatch toggles it.
  sum,
  /// It is what the first minibatch of the step makes of it: flags, and whatever has no sum.
  first,
  /// It is a running average of statistics of the minibatches, and moves as if they had come one
  /// after the other, in the mean over all orders: the running statistics of batch normalisation.
  average,
};

/// How one buffer of a model combines, where that is not what its type says.
struct BufferRule {
  /// Its name among Model::buffers.
  std::string buffer;
  BufferCombination combination = BufferCombination::mean;
  /// Of an average: the weight of a minibatch's statistics; empty where all minibatches weigh the
  /// same (PyTorch's momentum of None), for which there must be a counter.
  std::optional<double> momentum{};
  /// Of an average: the integer buffer that counts how often it was updated; may be empty.
  std::string counter{};
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
  /// Of those that do not combine as their type says. make_model() finds the running statistics of
  /// libtorch's normalisations.
  std::vector<BufferRule> buffer_rules{};
};

/// Makes a new instance of a model; called once for each thread. The initial values are those of
/// the first instance.
using ModelFactory = std::function<Model()>;

/// Maps the outputs of a minibatch and its targets to a scalar: the mean loss of its samples.
using Loss = std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target)>;

}  // namespace rubato
