#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "base/core/check.hpp"
#include "base/machine/openblas.hpp"
#include "libtorch/torch/objective/torch_objective.hpp"

namespace rubato {

namespace {

TorchObjective& own_objective(const Trainer& trainer) {
  return dynamic_cast<TorchObjective&>(trainer.objective());
}

std::shared_ptr<const Dataset> checked(TensorDataset dataset, std::string_view name) {
  require_valid(dataset, name);
  return make_dataset(std::move(dataset));
}

}  // namespace

TorchTrainer::TorchTrainer(const ModelFactory& model, Loss loss, TensorDataset train, Trace trace,
                           const TrainOptions& options, TorchOptions torch)
    : TorchTrainer(model, std::move(loss), std::move(train),
                   std::make_unique<TraceSource>(std::move(trace)), options, std::move(torch)) {}

TorchTrainer::TorchTrainer(const ModelFactory& model, Loss loss, TensorDataset train,
                           std::unique_ptr<StepSource> source, const TrainOptions& options,
                           TorchOptions torch)
    : TorchTrainer(model, std::move(loss), checked(std::move(train), "training data"),
                   std::move(source), options, std::move(torch)) {}

TorchTrainer::TorchTrainer(const ModelFactory& model, Loss loss,
                           std::shared_ptr<const Dataset> train, Trace trace,
                           const TrainOptions& options, TorchOptions torch)
    : TorchTrainer(model, std::move(loss), std::move(train),
                   std::make_unique<TraceSource>(std::move(trace)), options, std::move(torch)) {}

TorchTrainer::TorchTrainer(const ModelFactory& model, Loss loss,
                           std::shared_ptr<const Dataset> train, std::unique_ptr<StepSource> source,
                           const TrainOptions& options, TorchOptions torch)
    : Trainer(make_torch_objective({.model = model,
                                    .loss = std::move(loss),
                                    .train = std::move(train),
                                    .options = std::move(torch),
                                    .seed = options.seed}),
              std::move(source), options) {
  // The buffers are reserved before the first step, in which not every thread may compute a
  // product.
  reserve_openblas_buffers(workers().threads());
}

void TorchTrainer::set_test(TensorDataset test, Loss loss) {
  set_test(checked(std::move(test), "test data"), std::move(loss));
}
void TorchTrainer::set_test(std::shared_ptr<const Dataset> test, Loss loss) {
  own_objective(*this).set_test(std::move(test), std::move(loss));
}

Evaluation TorchTrainer::evaluate(const TensorDataset& dataset) {
  return evaluate(*checked(dataset, "data to evaluate on"));
}
Evaluation TorchTrainer::evaluate(const Dataset& dataset) {
  return own_objective(*this).evaluate(dataset, workers(), evaluation_options(options()), "");
}

Tensors TorchTrainer::predict(const TensorDataset& dataset) {
  return predict(*checked(dataset, "data to predict"));
}
Tensors TorchTrainer::predict(const Dataset& dataset) {
  return own_objective(*this).predict(dataset, workers());
}

const std::vector<NamedTensor>& TorchTrainer::parameters() const {
  return own_objective(*this).state().parameters();
}
const std::vector<NamedTensor>& TorchTrainer::buffers() const {
  return own_objective(*this).state().buffers();
}
const TorchOptions& TorchTrainer::torch_options() const {
  return own_objective(*this).options();
}

Evaluation evaluate(const Training& training, const TensorDataset& dataset) {
  return evaluate(training, *checked(dataset, "data to evaluate on"));
}
Evaluation evaluate(const Training& training, const Dataset& dataset) {
  auto* const objective = dynamic_cast<TorchObjective*>(&training.objective());
  if (objective == nullptr) {
    throw Error(
        "tensors are evaluated by a model of libtorch; accepted: a TorchTrainer's training");
  }
  return objective->evaluate(dataset, training.workers(), evaluation_options(training.options()),
                             "");
}

}  // namespace rubato
