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
#include <rubato/loop/libtorch_options.hpp>
#include <rubato/loop/model_options.hpp>
#include <rubato/loop/optimizer.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/numbers/loss_scaler.hpp>

namespace rubato {

/// Makes libtorch and the BLAS compute on the calling thread only, in the whole process except for
/// threads on which libtorch has computed before; from then on parallelism comes from running
/// several cores at a time.
void use_one_intra_op_thread();

/// Remembers the numbers of intra-op threads of libtorch and of an OpenBLAS, and restores them on
/// destruction, which has to be on the same thread. For programs that use libtorch themselves next
/// to a training on another thread.
class IntraOpThreads {
 public:
  IntraOpThreads();
  ~IntraOpThreads();
  IntraOpThreads(const IntraOpThreads&) = delete;
  IntraOpThreads& operator=(const IntraOpThreads&) = delete;

 private:
  int of_libtorch_;
  // 0 without an OpenBLAS.
  int of_blas_ = 0;
};

/// The versions a result depends on.
struct Versions {
  std::string rubato;
  std::string torch;
  std::string onetbb;
  /// Name and version that the BLAS reports; "unknown" if it reports none.
  std::string blas;
};
[[nodiscard]] Versions versions();

/// The kernels that the libraries compute with in this process, as each names them; empty if a
/// library does not say, or is not there.
struct KernelsInUse {
  /// Name of the core: "Haswell".
  std::string openblas;
  /// "AVX2".
  std::string aten;
  /// "avx512_core".
  std::string onednn;

  friend bool operator==(const KernelsInUse&, const KernelsInUse&) = default;
};
[[nodiscard]] KernelsInUse kernels_in_use();

/// True if oneDNN has the kernels that libtorch will ask it for under Precision::bf16. libtorch
/// asks on every CPU with AVX-512, even if ONEDNN_MAX_CPU_ISA forbids oneDNN to use it; on other
/// CPUs it computes bfloat16 itself.
[[nodiscard]] bool has_bf16_kernels();

/// True if the process computes on a BLAS that is known to be fast. Debian's reference BLAS, which
/// is ten times slower, is not.
[[nodiscard]] bool has_fast_blas();

/// The tensors as a dictionary from name to tensor, in the format that Python's torch.load reads:
///
///     model.load_state_dict(torch.load("weights.pt"))
[[nodiscard]] std::string pickled_weights(std::span<const NamedTensor> parameters,
                                          std::span<const NamedTensor> buffers);
/// Writes the same bytes to a sink. Dense tensors are not copied.
void stream_pickled_weights(std::span<const NamedTensor> parameters,
                            std::span<const NamedTensor> buffers, const ByteSink& sink);

/// The tensors in the bytes of a file: a state_dict that Python's torch.save() wrote, an
/// OrderedDict or a dict, a safetensors file of any program, or the output of pickled_weights().
/// `source` names the file in messages.
///
/// Nothing in the file is executed, and nothing that it says is trusted: memory is allocated in
/// proportion to its size, and a tensor that reaches beyond it is an error. Throws Error for a file
/// that is damaged or not a state_dict.
[[nodiscard]] std::vector<NamedTensor> read_weights(std::string_view bytes,
                                                    const std::string& source);

/// Sets all parameters and buffers of the model to the weights of the same names. Throws Error if
/// names or shapes are not those of the model, with all differences; the model is then unchanged.
void load_weights(const Model& model, std::span<const NamedTensor> weights,
                  const std::string& source);

}  // namespace rubato

namespace rubato {

// Losses of classes, for one class in each sample or for several, such as those of the tokens of a
// sequence: class indices are [batch] or [batch, ...], outputs [batch, classes], [batch, ...,
// classes] or, in PyTorch's order, [batch, classes, ...], and the mean is over all class indices.
// `label_smoothing`, from 0 to below 1, is the share of each target that is spread over all classes
// alike (Szegedy et al. 2016, section 7). They throw Error if it is out of its range.

/// Negative log-likelihood of log-probabilities against class indices.
[[nodiscard]] Loss nll_loss(double label_smoothing = 0);
/// Cross entropy of logits against class indices, or against probabilities of the classes: targets
/// of a floating-point type in the shape of the outputs, [batch, classes] or with the classes as
/// the second dimension, as in torch::nn::CrossEntropyLoss. Throws Error for probabilities below 0
/// and for rows whose sum differs from 1 by more than 1e-4, with the number of the row in the
/// minibatch.
[[nodiscard]] Loss cross_entropy_loss(double label_smoothing = 0);

/// Weights of the targets in a loss of classes.
struct ClassWeights {
  /// Targets of this class (padding) have no weight, even if the model has no such output.
  /// Probabilities leave out no class.
  std::optional<std::int64_t> ignore{};
  /// Weights of the classes, each at least 0; the vector is empty if all weigh 1.
  std::vector<double> weights{};

  [[nodiscard]] bool any() const { return ignore || !weights.empty(); }
};
/// The same losses as weighted sums (LossValue), if there are weights: the mean over a whole step
/// is PyTorch's, with `ignore_index` and `weight`. Against probabilities it is the mean over the
/// samples, as PyTorch's. They throw Error for weights out of their range.
[[nodiscard]] Loss nll_loss(const ClassWeights& classes, double label_smoothing = 0);
[[nodiscard]] Loss cross_entropy_loss(const ClassWeights& classes, double label_smoothing = 0);
/// Mean squared error of outputs against targets of the same shape; throws Error for another shape,
/// which libtorch would broadcast.
[[nodiscard]] Loss mse_loss();
/// Binary cross entropy of the sigmoid of outputs, which are logits, against targets of the same
/// shape, from 0 to 1. Throws Error for other targets and, before training, for log-probabilities.
[[nodiscard]] Loss bce_loss();
/// Applies forward() of a TorchScript module to the outputs, one by one, and then the targets. It
/// returns one number, the mean over the samples, or two, a sum and its weight (LossValue). Several
/// threads call it at once: throws Error if forward() sets attributes, and if the module has
/// parameters that require a gradient, which nothing would train.
[[nodiscard]] Loss script_loss(const torch::jit::Module& module);

/// Changes the inputs of a minibatch (their first tensor, if there are several) before the model
/// sees them, in training only. Random numbers that it draws from libtorch belong to the minibatch,
/// so that the same minibatch is changed in the same way whoever computes it; other sources of
/// randomness are its own responsibility. Called by several threads at once.
using Augmentation = std::function<at::Tensor(const at::Tensor& inputs)>;

/// Moves each image, of shape [..., height, width] behind the samples, by up to `pixels` >= 0 up or
/// down and left or right, each equally likely; the edge is repeated into the gap. Throws Error for
/// a negative number.
[[nodiscard]] Augmentation random_shift(std::int64_t pixels);

// The augmentations below change each image of a minibatch, of shape [samples, channels, height,
// width], by itself.

/// Mirrors the image, left to right, with probability 1/2.
[[nodiscard]] Augmentation random_flip();
/// Pads the image with `padding` >= 0 zeros on each side and cuts its size out of the result, each
/// place equally likely. Throws Error for a negative number.
[[nodiscard]] Augmentation random_crop(std::int64_t padding);
/// Sets a square of `size` >= 1 pixels to zero whose centre lies anywhere in the image: part of the
/// square may lie outside. Throws Error for a smaller number.
[[nodiscard]] Augmentation random_cutout(std::int64_t size);

/// All of them, one after the other; empty if there are none.
[[nodiscard]] Augmentation augmentation(const std::vector<AugmentationOptions>& options);

/// How a model of libtorch is computed; a state can be loaded only with the same options.
struct TorchOptions {
  Precision precision = Precision::full;
  /// Loss scaling, used under Precision::fp16 only.
  LossScaleOptions loss_scale{};
  /// Operators of libtorch that rubato computes itself, in training and evaluation.
  ReplacedOperators operators{};
  InitializerOptions initializer{};
  /// BufferUse::local needs TrainOptions::exact to be false.
  BufferUse buffers = BufferUse::combined;
  /// Applied to the inputs of a minibatch before the model; empty means none.
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
/// the optimizer's options are overwritten at every step. Rates::weight_decay_factor is ignored.
///
/// T is float or double.
template <class T>
class TorchOptimizer final : public FlatOptimizer<T> {
 public:
  /// The arrays of `trained` must outlive it. Only the factors on the rate are used from the
  /// groups; the maker has to set anything else that differs. Throws Error if the optimizer has no
  /// learning rate.
  TorchOptimizer(ParameterLayout layout, const std::vector<TrainedArray>& trained,
                 const TorchOptimizerMaker& make, std::vector<GroupOptions> groups = {});

  void step(const Update<T>& update, Workers& workers) override;
  /// Visits the state as libtorch serialises it: as one array, and to show it entry by entry.
  void visit_state(StateVisitor& state) override;
  [[nodiscard]] bool follows_sums() const override { return false; }

 private:
  ParameterLayout layout_;
  std::vector<GroupOptions> groups_;
  // The mean gradient; a step gives each parameter that it reaches a view of it.
  at::Tensor gradient_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

extern template class TorchOptimizer<float>;
extern template class TorchOptimizer<double>;

/// A user's optimizer of libtorch, for TrainOptions::own_optimizer.
[[nodiscard]] OwnOptimizer torch_optimizer(const TorchOptimizerMaker& make);

/// Trains a model of libtorch along a trace.
///
///     rubato::TorchTrainer trainer(rubato::model_factory<Net>(), rubato::nll_loss(), train_set,
///                                  rubato::Trace::read_csv("trace.csv"), options);
///     trainer.set_test(test_set);
///     const rubato::TrainResult result = trainer.fit();
///
/// Random numbers that the model or the loss draws from libtorch (dropout) belong to the minibatch
/// (RandomStream); the initial values of the parameters are drawn from TrainOptions::seed. The
/// constructor seeds libtorch's generator, of which a process has only one: several trainers have
/// to be made one after the other, and may then train at the same time.
///
/// It sets the number of intra-op threads of libtorch (and of an OpenBLAS) to 1 for the process:
/// the threads run cores instead.
class TorchTrainer : public Trainer {
 public:
  /// Throws Error as Trainer does, and for a model that cannot be shared.
  TorchTrainer(const ModelFactory& model, Loss loss, TensorDataset train, Trace trace,
               const TrainOptions& options, TorchOptions torch = {});
  /// Takes the steps from a source that is asked for each when it is needed.
  TorchTrainer(const ModelFactory& model, Loss loss, TensorDataset train,
               std::unique_ptr<StepSource> source, const TrainOptions& options,
               TorchOptions torch = {});
  /// Trains on a data set of the caller's own, with several inputs and targets if the model and the
  /// loss take them.
  TorchTrainer(const ModelFactory& model, Loss loss, std::shared_ptr<const Dataset> train,
               Trace trace, const TrainOptions& options, TorchOptions torch = {});
  TorchTrainer(const ModelFactory& model, Loss loss, std::shared_ptr<const Dataset> train,
               std::unique_ptr<StepSource> source, const TrainOptions& options,
               TorchOptions torch = {});

  /// Sets a data set to evaluate the model on after each epoch, and its loss if that is not the
  /// training loss.
  void set_test(TensorDataset test, Loss loss = {});
  void set_test(std::shared_ptr<const Dataset> test, Loss loss = {});

  /// Evaluates the model as it is now, on all threads, with the loss of the test set.
  [[nodiscard]] Evaluation evaluate(const TensorDataset& dataset);
  [[nodiscard]] Evaluation evaluate(const Dataset& dataset);

  /// The outputs of the model as it is now for all samples, in their order, in evaluation mode and
  /// on all threads. Targets are ignored. Throws TrainingError.
  [[nodiscard]] Tensors predict(const TensorDataset& dataset);
  [[nodiscard]] Tensors predict(const Dataset& dataset);

  /// Trainer::parameters() and buffers() as tensors.
  [[nodiscard]] const std::vector<NamedTensor>& parameters() const;
  [[nodiscard]] const std::vector<NamedTensor>& buffers() const;

  [[nodiscard]] const TorchOptions& torch_options() const;
};

/// Evaluates a training by a TorchTrainer on another data set, for observers. Throws Error for any
/// other training.
[[nodiscard]] Evaluation evaluate(const Training& training, const TensorDataset& dataset);
[[nodiscard]] Evaluation evaluate(const Training& training, const Dataset& dataset);

}  // namespace rubato
