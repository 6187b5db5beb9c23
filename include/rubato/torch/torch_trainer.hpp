#pragma once

#include <memory>
#include <vector>

#include <rubato/model/model.hpp>
#include <rubato/torch/dataset.hpp>
#include <rubato/torch/torch_optimizer.hpp>
#include <rubato/torch/torch_options.hpp>
#include <rubato/train/trainer.hpp>

namespace rubato {

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
