#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// Clang needs ivalue.h before what follows it.
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/module.h>

#include <rubato/base/state.hpp>

namespace rubato {

/// A tensor of a model and its name in the model ("conv1.weight").
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// One tensor or several of the same samples, in an order that data, model and loss agree on.
using Tensors = std::vector<at::Tensor>;

/// The only tensor of the list. Throws Error unless there is exactly one; `what` names them
/// ("outputs").
[[nodiscard]] const at::Tensor& only_tensor(const Tensors& tensors, const char* what);

/// The function that a model computes: the outputs for a batch of inputs, differentiably.
class Forward {
 public:
  Forward() = default;
  /// Takes a function from tensor to tensor.
  template <class Function>
  requires(std::is_invocable_r_v<at::Tensor, Function&, const at::Tensor&> &&
           !std::same_as<std::remove_cvref_t<Function>, Forward>)
      Forward(Function function)  // NOLINT(google-explicit-constructor): a function as it is
      : function_([function = std::move(function)](const Tensors& inputs) {
          return Tensors{function(only_tensor(inputs, "inputs"))};
        }) {}
  /// Takes a function from Tensors to Tensors.
  template <class Function>
  requires(std::is_invocable_r_v<Tensors, Function&, const Tensors&> &&
           !std::is_invocable_v<Function&, const at::Tensor&> &&
           !std::same_as<std::remove_cvref_t<Function>, Forward>)
      Forward(Function function)  // NOLINT(google-explicit-constructor): a function as it is
      : function_(std::move(function)) {}

  [[nodiscard]] Tensors operator()(const Tensors& inputs) const { return function_(inputs); }
  /// Throws Error if the model takes several inputs or gives several outputs.
  [[nodiscard]] at::Tensor operator()(const at::Tensor& input) const {
    return only_tensor(function_(Tensors{input}), "outputs");
  }
  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(function_); }

 private:
  std::function<Tensors(const Tensors& inputs)> function_;
};

/// The loss of some samples: their mean, or a weighted sum (over tokens, over classes) with the sum
/// of its weights. A step divides the sum of such sums by the sum of the weights, so that every
/// weight counts alike in whichever minibatch it is.
struct LossValue {
  LossValue(at::Tensor mean)  // NOLINT(google-explicit-constructor): what most losses return
      : loss(std::move(mean)) {}
  /// `of_weights` is the sum of the weights, one number of at least 0.
  LossValue(at::Tensor sum, at::Tensor of_weights)
      : loss(std::move(sum)), weight(std::move(of_weights)) {}

  /// The value of `weight`; empty for a mean. Throws Error unless it is one number, finite and at
  /// least 0.
  [[nodiscard]] std::optional<double> weight_number() const;

  at::Tensor loss;
  /// Sum of the weights; undefined for a mean.
  at::Tensor weight{};
};

/// Maps the outputs of a minibatch and its targets to a LossValue; if the function returns a
/// tensor, this is the mean over the samples.
class Loss {
 public:
  Loss() = default;
  /// Takes a function of one output and one target.
  template <class Function>
  requires(std::is_invocable_r_v<LossValue, Function&, const at::Tensor&, const at::Tensor&> &&
           !std::same_as<std::remove_cvref_t<Function>, Loss>)
      Loss(Function function)  // NOLINT(google-explicit-constructor): a function as it is
      : function_([function = std::move(function)](const Tensors& outputs,
                                                   const Tensors& targets) -> LossValue {
          const at::Tensor& output = only_tensor(outputs, "outputs");
          return function(output, only_tensor(targets, "targets"));
        }) {}
  /// Takes a function of Tensors, for models with several outputs and data with several targets.
  template <class Function>
  requires(std::is_invocable_r_v<LossValue, Function&, const Tensors&, const Tensors&> &&
           !std::is_invocable_v<Function&, const at::Tensor&, const at::Tensor&> &&
           !std::same_as<std::remove_cvref_t<Function>, Loss>)
      Loss(Function function)  // NOLINT(google-explicit-constructor): a function as it is
      : function_(std::move(function)) {}

  [[nodiscard]] LossValue value(const Tensors& outputs, const Tensors& targets) const {
    return function_(outputs, targets);
  }
  /// The mean, also if the loss is a weighted sum.
  [[nodiscard]] at::Tensor operator()(const Tensors& outputs, const Tensors& targets) const {
    const LossValue value = function_(outputs, targets);
    return value.weight.defined() ? value.loss.div(value.weight) : value.loss;
  }
  [[nodiscard]] at::Tensor operator()(const at::Tensor& output, const at::Tensor& target) const {
    return (*this)(Tensors{output}, Tensors{target});
  }
  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(function_); }

  /// The same loss, with a weight of 0 for these class targets. Accuracies leave them out, as they
  /// do negative ones, if a loss has weights.
  [[nodiscard]] Loss without(std::vector<std::int64_t> classes) const {
    Loss loss = *this;
    loss.without_ = std::move(classes);
    return loss;
  }
  [[nodiscard]] const std::vector<std::int64_t>& classes_without_weight() const { return without_; }

  /// Threshold for models with one output for each class index: values above it mean class 1, all
  /// others class 0. The default of 0 is right for logits.
  [[nodiscard]] double threshold() const { return threshold_; }
  [[nodiscard]] Loss with_threshold(double threshold) && {
    threshold_ = threshold;
    return std::move(*this);
  }

  /// True if targets of a floating-point type are probabilities of the classes, in the shape of the
  /// outputs; accuracies take the largest of them as the class.
  [[nodiscard]] bool takes_probabilities() const { return takes_probabilities_; }
  [[nodiscard]] Loss with_probabilities() && {
    takes_probabilities_ = true;
    return std::move(*this);
  }

  /// Looks at outputs and targets that are tried before training, and throws Error for those that
  /// the loss would misinterpret.
  using Check = std::function<void(const Tensors& outputs, const Tensors& targets)>;
  [[nodiscard]] const Check& check() const { return check_; }
  [[nodiscard]] Loss with_check(Check check) && {
    check_ = std::move(check);
    return std::move(*this);
  }

 private:
  std::function<LossValue(const Tensors& outputs, const Tensors& targets)> function_;
  std::vector<std::int64_t> without_;
  double threshold_ = 0;
  bool takes_probabilities_ = false;
  Check check_{};
};

/// Rule by which the minibatches of a step change a buffer. Each minibatch begins with the value
/// before the step and changes it.
enum class BufferCombination {
  /// The buffer changes by the mean of the changes: the rule for floating-point buffers of which
  /// nothing else is known.
  mean,
  /// The buffer changes by their sum, as counters do: the rule for integer buffers. A bool is
  /// toggled if any minibatch toggles it.
  sum,
  /// The buffer takes the value that the first minibatch of the step gives it: flags, and whatever
  /// has no sum.
  first,
  /// The buffer is a running average of statistics of the minibatches, and changes as if they had
  /// come one after the other, in the mean over all orders: the running statistics of batch
  /// normalisation.
  average,
};

/// How one buffer of a model combines, if its type does not say so.
struct BufferRule {
  /// Name of the buffer in Model::buffers.
  std::string buffer;
  BufferCombination combination = BufferCombination::mean;
  /// Weight of a minibatch's statistics, for an average. If it is empty, all minibatches weigh the
  /// same (PyTorch's momentum of None), and there must be a counter.
  std::optional<double> momentum{};
  /// Name of the integer buffer that counts the updates of an average; may be empty.
  std::string counter{};
};

/// One instance of a model, as the trainer sees it: a function and the tensors it works on.
///
/// The tensors are those of the instance, not copies: the trainer redirects their storage.
struct Model {
  Forward forward;
  /// Switches between training and evaluation (batch normalisation, dropout).
  std::function<void(bool training)> set_training;
  /// Parameters in the order of their declaration: floating-point, all of one type.
  std::vector<NamedTensor> parameters;
  /// Running statistics and the like.
  std::vector<NamedTensor> buffers;
  /// Rules for buffers that do not combine as their type says. make_model() adds the running
  /// statistics of libtorch's normalisations.
  std::vector<BufferRule> buffer_rules{};
};

/// Makes a new instance of a model; called once for each thread. The initial values are those of
/// the first instance.
using ModelFactory = std::function<Model()>;

/// The shape of an image and the number of classes.
struct ImageShape {
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
  std::int64_t classes = 10;
};

/// The shape of a sequence of token ids, each of which has a class.
struct SequenceShape {
  /// Number of token ids in a sequence, at least 1.
  std::int64_t tokens = 1;
  /// Ids range from 0 to `vocabulary` - 1.
  std::int64_t vocabulary = 1;
  std::int64_t classes = 1;
};

/// The names that builtin_model() accepts.
[[nodiscard]] std::span<const std::string_view> builtin_model_names();

/// A built-in model, with its arguments if it takes some ("mlp:hidden=64"). All map [batch,
/// channels, height, width] to log-probabilities [batch, classes].
///
///
///   mnist-cnn  conv 5x5 to 10 channels, max-pool 2, relu, batch norm, conv 5x5 to 20 channels,
///              max-pool 2, relu, batch norm, linear to 50, relu, linear: PyTorch's classic MNIST
///              network. 1 x 28 x 28 only.
///   mlp        linear to 128, relu, linear to 64, relu, linear; or as PerceptronOptions say
///   softmax    linear: multinomial logistic regression
///   toy-net    conv 3x3 to 64, to 128, max-pool 2, conv 3x3 to 256, to 512, max-pool 2, linear to
///              512, linear; batch norm and relu behind all but the last. 5.8 million parameters on
///              28 x 28; at least 16 x 16
///   resnet20   the residual network of 20 layers of He et al. 2016; ResidualOptions
///   transformer  an encoder whose tokens are the rows of the image; TransformerOptions
///
/// Each has a twin in Python that loads its weights (docs/models.md).
///
/// Throws Error for an unknown name (the message names the nearest one), for arguments that the
/// model does not take, and for a shape that it cannot take.
[[nodiscard]] ModelFactory builtin_model(std::string_view model, const ImageShape& shape);

/// A built-in model of real targets: it maps [batch, ...] of `inputs` numbers to [batch, outputs].
/// Only mlp does so, without the log-softmax. Throws Error as builtin_model() does, and for models
/// of classes.
[[nodiscard]] ModelFactory regression_model(std::string_view model, std::int64_t inputs,
                                            std::int64_t outputs);

/// A built-in model of sequences: it maps token ids, int64 [batch, tokens], to log-probabilities
/// [batch, tokens, classes]. Only the transformer does so; no token sees later ones, so that the
/// class of a token may be the next token. Throws Error as builtin_model() does, and for models of
/// images.
[[nodiscard]] ModelFactory sequence_model(std::string_view model, const SequenceShape& shape);

}  // namespace rubato

namespace rubato {

/// A TorchScript module, as torch::jit::load() returns it, whose forward() takes the inputs of a
/// batch as tensors, one by one, and returns a tensor, or a tuple, list or dictionary of tensors.
/// The running statistics of its modules with a `momentum` (a number or None), a `running_mean` and
/// a `running_var` combine as averages.
///
/// forward() is interpreted as it is written, in the calling thread. libtorch's profiling executor,
/// which computes a module differently once it has seen it run, is bypassed, so that bits do not
/// depend on how often a thread has run it; what the module forks runs at once. Tensor attributes
/// that forward() sets (`self.mean = ...`) are buffers like those that it changes in place.
///
/// Throws Error if forward() sets any other attribute, which no state would include, and for an
/// embedding with max_norm, which TorchScript ignores.
[[nodiscard]] Model make_model(const torch::jit::Module& module);

/// A factory of copies of the module:
///
///     const auto factory = rubato::script_factory(torch::jit::load("net.pt"));
///
/// Throws Error if two of its tensors share memory without being one tensor.
[[nodiscard]] ModelFactory script_factory(const torch::jit::Module& module);

/// The module in the bytes of a TorchScript file (torch.jit.save), on the CPU; `source` names the
/// file in messages. Throws Error for bytes that are not such a file or are damaged.
///
/// A TorchScript file is a program, which runs when it is trained: docs/models.md says what a
/// hostile file can do.
[[nodiscard]] torch::jit::Module read_script(std::string_view bytes, const std::string& source);

/// A copy of the module with the values of `parameters` and `buffers`, matched by name, as the
/// bytes of a TorchScript file.
[[nodiscard]] std::string script_bytes(const torch::jit::Module& module,
                                       std::span<const NamedTensor> parameters,
                                       std::span<const NamedTensor> buffers);
/// Writes the same bytes to a sink. Dense tensors are not copied.
void stream_script(const torch::jit::Module& module, std::span<const NamedTensor> parameters,
                   std::span<const NamedTensor> buffers, const ByteSink& sink);

}  // namespace rubato
