#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Clang needs ivalue.h before what follows it.
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/optim/optimizer.h>

#include <rubato/base/state.hpp>
#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/loop/model_options.hpp>
#include <rubato/loop/optimizer.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/loop/training_options.hpp>
#include <rubato/numbers/loss_scaler.hpp>

namespace rubato {

/// Lets libtorch and the BLAS compute on the calling thread only, in the whole process, but for
/// threads on which libtorch has computed before; from then on parallelism comes from running
/// several cores at a time.
void use_one_intra_op_thread();

/// Remembers the numbers of intra-op threads of libtorch and of an OpenBLAS, and sets them again
/// when it goes, on the same thread: for programs that use libtorch for themselves, beside a
/// training on another thread.
class IntraOpThreads {
 public:
  IntraOpThreads();
  ~IntraOpThreads();
  IntraOpThreads(const IntraOpThreads&) = delete;
  IntraOpThreads& operator=(const IntraOpThreads&) = delete;

 private:
  int of_libtorch_;
  // 0 where there is none.
  int of_blas_ = 0;
};

/// The versions a result depends on.
struct Versions {
  std::string rubato;
  std::string torch;
  std::string onetbb;
  /// As the BLAS calls itself; "unknown" for one that does not say.
  std::string blas;
};
[[nodiscard]] Versions versions();

/// The kernels that the libraries compute with in this process, as each calls them; empty where a
/// library does not say, or is not there.
struct KernelsInUse {
  /// The core: "Haswell".
  std::string openblas;
  /// "AVX2".
  std::string aten;
  /// "avx512_core".
  std::string onednn;

  friend bool operator==(const KernelsInUse&, const KernelsInUse&) = default;
};
[[nodiscard]] KernelsInUse kernels_in_use();

/// Whether oneDNN has the kernels that libtorch will ask it for under Precision::bf16. libtorch
/// asks wherever the CPU has AVX-512, also where ONEDNN_MAX_CPU_ISA keeps oneDNN from it; elsewhere
/// it computes bfloat16 itself.
[[nodiscard]] bool has_bf16_kernels();

/// Whether the process computes on a BLAS that is known to be fast. Debian's reference BLAS, which
/// is ten times slower, is not.
[[nodiscard]] bool has_fast_blas();

/// The tensors as a dictionary from name to tensor, in the format that Python's torch.load reads:
///
///     model.load_state_dict(torch.load("weights.pt"))
[[nodiscard]] std::string pickled_weights(std::span<const NamedTensor> parameters,
                                          std::span<const NamedTensor> buffers);
/// Gives the same bytes to a sink. Dense tensors are not copied.
void stream_pickled_weights(std::span<const NamedTensor> parameters,
                            std::span<const NamedTensor> buffers, const ByteSink& sink);

/// The tensors in the bytes of a file: a state_dict that Python's torch.save() wrote, an
/// OrderedDict or a dict, or what pickled_weights() or state_bytes() did. `source` stands for the
/// file in messages.
///
/// Nothing in the file is called, and nothing that it says is believed: memory is taken in
/// proportion to its size, and a tensor that reaches beyond it is an error. Throws Error for what
/// is damaged, and for what is no state_dict.
[[nodiscard]] std::vector<NamedTensor> read_weights(std::string_view bytes,
                                                    const std::string& source);

/// Gives all parameters and buffers of the model the values of the weights of their names. Throws
/// Error where names or shapes are not those of the model, with all that differs; the model is then
/// as it was.
void load_weights(const Model& model, std::span<const NamedTensor> weights,
                  const std::string& source);

}  // namespace rubato

namespace rubato {

// Losses of classes, of one thing in each sample or of several, such as the tokens of a sequence:
// class indices are [batch] or [batch, ...], outputs [batch, classes], [batch, ..., classes] or, in
// PyTorch's order, [batch, classes, ...], and the mean is that of all things. `label_smoothing`,
// from 0 to below 1, is the share of each target that is spread over all classes alike (Szegedy et
// al. 2016, section 7). Throw Error when it is out of its range.

/// Negative log-likelihood of log-probabilities against class indices.
[[nodiscard]] Loss nll_loss(double label_smoothing = 0);
/// Cross entropy of logits against class indices.
[[nodiscard]] Loss cross_entropy_loss(double label_smoothing = 0);

/// Things of different weights, in a loss of classes.
struct ClassWeights {
  /// Things of this class have no weight, whether or not there is such an output: padding.
  std::optional<std::int64_t> ignore{};
  /// Each class has a weight of at least 0; the vector is empty if all weigh 1.
  std::vector<double> weights{};

  [[nodiscard]] bool any() const { return ignore || !weights.empty(); }
};
/// The same as sums over weights (LossValue), where there are any: the mean over a step is
/// PyTorch's, with `ignore_index` and `weight`, of the whole step. Throw Error for weights out of
/// their range.
[[nodiscard]] Loss nll_loss(const ClassWeights& classes, double label_smoothing = 0);
[[nodiscard]] Loss cross_entropy_loss(const ClassWeights& classes, double label_smoothing = 0);
/// Mean squared error of outputs against targets of the same shape; throws Error for another shape,
/// which libtorch would broadcast.
[[nodiscard]] Loss mse_loss();
/// Binary cross entropy of the sigmoid of outputs, which are logits, against targets of the same
/// shape, from 0 to 1. Throws Error for other targets and, before training, for log-probabilities.
[[nodiscard]] Loss bce_loss();
/// What forward() of a TorchScript module makes of the outputs, one by one, and then the targets:
/// one number, the mean over the samples, or two, a sum and its weight (LossValue). Several threads
/// call it at once: throws Error where it sets attributes, and where it has parameters that require
/// a gradient, which nobody would train.
[[nodiscard]] Loss script_loss(const torch::jit::Module& module);

/// Changes the inputs of a minibatch (their first tensor, where there are several) before the model
/// sees them, in training only. Random numbers
/// that it draws from libtorch are the minibatch's, so that the same minibatch is changed in the
/// same way whoever computes it; other randomness is its own to mind. Called by several threads at
/// once.
using Augmentation = std::function<at::Tensor(const at::Tensor& inputs)>;

/// Moves each image, of shape [..., height, width] behind the samples, by up to `pixels` >= 0 up or
/// down and left or right, each as likely; what comes in at the edge repeats the edge. Throws Error
/// for a negative number.
[[nodiscard]] Augmentation random_shift(std::int64_t pixels);

// Of the images of a minibatch, of shape [samples, channels, height, width], each by itself.

/// Mirrors it, left to right, with probability 1/2.
[[nodiscard]] Augmentation random_flip();
/// Cuts its size out of it with `padding` >= 0 zeros on each side, each place as likely. Throws
/// Error for a negative number.
[[nodiscard]] Augmentation random_crop(std::int64_t padding);
/// Sets a square of `size` >= 1 pixels to zero whose middle lies anywhere in it: part of the square
/// may lie outside. Throws Error for a smaller number.
[[nodiscard]] Augmentation random_cutout(std::int64_t size);

/// All of them, one after the other; empty where there is none.
[[nodiscard]] Augmentation augmentation(const std::vector<AugmentationOptions>& options);

/// How a model of libtorch is computed; all of it is part of what a state is bound to.
struct TorchOptions {
  Precision precision = Precision::full;
  /// Of Precision::fp16.
  LossScaleOptions loss_scale{};
  /// Which operators of libtorch are computed by rubato, in training and evaluation.
  ReplacedOperators operators{};
  InitializerOptions initializer{};
  /// BufferUse::local needs TrainOptions::exact to be false.
  BufferUse buffers = BufferUse::combined;
  /// What the inputs of a minibatch go through before the model; empty is nothing.
  Augmentation augment{};
};

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
  // The mean gradient, of which a step gives each parameter that it reaches a view.
  at::Tensor gradient_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

extern template class TorchOptimizer<float>;
extern template class TorchOptimizer<double>;

/// An optimizer of libtorch of the user's own, for TrainOptions::own_optimizer.
[[nodiscard]] OwnOptimizer torch_optimizer(const TorchOptimizerMaker& make);

/// Trains a model of libtorch as a trace says.
///
///     rubato::TorchTrainer trainer(rubato::model_factory<Net>(), rubato::nll_loss(), train_set,
///                                  rubato::Trace::read_csv("trace.csv"), options);
///     trainer.set_test(test_set);
///     const rubato::TrainResult result = trainer.fit();
///
/// Random numbers that the model or the loss draws from libtorch (dropout) are the minibatch's
/// (RandomStream), the initial values of the parameters are drawn from TrainOptions::seed. A
/// trainer that is made seeds libtorch's generator, of which a process has one: several are made
/// one after the other, and may then train at the same time.
///
/// It sets libtorch's (and an OpenBLAS's) number of intra-op threads to 1 for the process: the
/// threads run cores instead.
class TorchTrainer : public Trainer {
 public:
  /// Throws Error as Trainer does, and for a model that cannot be shared.
  TorchTrainer(const ModelFactory& model, Loss loss, TensorDataset train, Trace trace,
               const TrainOptions& options, TorchOptions torch = {});
  /// With steps that are asked for when they are needed.
  TorchTrainer(const ModelFactory& model, Loss loss, TensorDataset train,
               std::unique_ptr<StepSource> source, const TrainOptions& options,
               TorchOptions torch = {});
  /// On a data set of the caller's own; several inputs and targets where the model and the loss
  /// take them.
  TorchTrainer(const ModelFactory& model, Loss loss, std::shared_ptr<const Dataset> train,
               Trace trace, const TrainOptions& options, TorchOptions torch = {});
  TorchTrainer(const ModelFactory& model, Loss loss, std::shared_ptr<const Dataset> train,
               std::unique_ptr<StepSource> source, const TrainOptions& options,
               TorchOptions torch = {});

  /// A data set to evaluate the model on after each epoch, and its loss where that is not the
  /// training loss.
  void set_test(TensorDataset test, Loss loss = {});
  void set_test(std::shared_ptr<const Dataset> test, Loss loss = {});

  /// Evaluates the model as it is now, on all threads, by the loss of the test set.
  [[nodiscard]] Evaluation evaluate(const TensorDataset& dataset);
  [[nodiscard]] Evaluation evaluate(const Dataset& dataset);

  /// What the model as it is now gives for the samples, in evaluation and on all threads: the
  /// outputs for all of them, in their order. Targets are not looked at. Throws TrainingError.
  [[nodiscard]] Tensors predict(const TensorDataset& dataset);
  [[nodiscard]] Tensors predict(const Dataset& dataset);

  /// As Trainer has them, as tensors.
  [[nodiscard]] const std::vector<NamedTensor>& parameters() const;
  [[nodiscard]] const std::vector<NamedTensor>& buffers() const;

  [[nodiscard]] const TorchOptions& torch_options() const;
};

/// For observers: the evaluation of a training by a TorchTrainer on a data set of their own. Throws
/// Error for any other training.
[[nodiscard]] Evaluation evaluate(const Training& training, const TensorDataset& dataset);
[[nodiscard]] Evaluation evaluate(const Training& training, const Dataset& dataset);

}  // namespace rubato
