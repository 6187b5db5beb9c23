#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rubato {

/// A tensor of a model and the name it has there ("conv1.weight").
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// One tensor or several of the same samples, in an order that data, model and loss agree on.
using Tensors = std::vector<at::Tensor>;

/// The only one of them. Throws Error where there are none or several; `what` names them
/// ("outputs").
[[nodiscard]] const at::Tensor& only_tensor(const Tensors& tensors, const char* what);

/// What a model computes: the outputs for a batch of inputs, differentiably.
class Forward {
 public:
  Forward() = default;
  /// Of a function from tensor to tensor.
  template <class Function>
  requires(std::is_invocable_r_v<at::Tensor, Function&, const at::Tensor&> &&
           !std::same_as<std::remove_cvref_t<Function>, Forward>)
      Forward(Function function)  // NOLINT(google-explicit-constructor): a function as it is
      : function_([function = std::move(function)](const Tensors& inputs) {
          return Tensors{function(only_tensor(inputs, "inputs"))};
        }) {}
  /// Of a function from Tensors to Tensors.
  template <class Function>
  requires(std::is_invocable_r_v<Tensors, Function&, const Tensors&> &&
           !std::is_invocable_v<Function&, const at::Tensor&> &&
           !std::same_as<std::remove_cvref_t<Function>, Forward>)
      Forward(Function function)  // NOLINT(google-explicit-constructor): a function as it is
      : function_(std::move(function)) {}

  [[nodiscard]] Tensors operator()(const Tensors& inputs) const { return function_(inputs); }
  /// Throws Error where the model takes several inputs or gives several outputs.
  [[nodiscard]] at::Tensor operator()(const at::Tensor& input) const {
    return only_tensor(function_(Tensors{input}), "outputs");
  }
  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(function_); }

 private:
  std::function<Tensors(const Tensors& inputs)> function_;
};

/// Maps the outputs of a minibatch and its targets to a scalar: the mean loss of its samples.
class Loss {
 public:
  Loss() = default;
  /// Of a function of one output and one target.
  template <class Function>
  requires(std::is_invocable_r_v<at::Tensor, Function&, const at::Tensor&, const at::Tensor&> &&
           !std::same_as<std::remove_cvref_t<Function>, Loss>)
      Loss(Function function)  // NOLINT(google-explicit-constructor): a function as it is
      : function_([function = std::move(function)](const Tensors& outputs,
                                                   const Tensors& targets) -> at::Tensor {
          const at::Tensor& output = only_tensor(outputs, "outputs");
          return function(output, only_tensor(targets, "targets"));
        }) {}
  /// Of a function of Tensors, for models with several outputs and data with several targets.
  template <class Function>
  requires(std::is_invocable_r_v<at::Tensor, Function&, const Tensors&, const Tensors&> &&
           !std::is_invocable_v<Function&, const at::Tensor&, const at::Tensor&> &&
           !std::same_as<std::remove_cvref_t<Function>, Loss>)
      Loss(Function function)  // NOLINT(google-explicit-constructor): a function as it is
      : function_(std::move(function)) {}

  [[nodiscard]] at::Tensor operator()(const Tensors& outputs, const Tensors& targets) const {
    return function_(outputs, targets);
  }
  [[nodiscard]] at::Tensor operator()(const at::Tensor& output, const at::Tensor& target) const {
    return function_(Tensors{output}, Tensors{target});
  }
  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(function_); }

 private:
  std::function<at::Tensor(const Tensors& outputs, const Tensors& targets)> function_;
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
  Forward forward;
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

}  // namespace rubato
