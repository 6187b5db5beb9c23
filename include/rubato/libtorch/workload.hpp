#pragma once

#include <memory>
#include <string>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/runs/workload.hpp>

namespace rubato {

/// A program's own model of libtorch, with its loss and data.
struct OwnWorkload {
  ModelFactory model;
  Loss loss;
  std::shared_ptr<const Dataset> train;
  /// Data to evaluate after each epoch; null means none.
  std::shared_ptr<const Dataset> test{};
  /// Loss of the test set; empty means the training loss.
  Loss test_loss{};
  /// Description for people, in one line; empty gives the number of samples.
  std::string description{};
};

/// A program's own model and data as the workload of a Run, which keeps them as long as its
/// trainers need them. A state recognises the data by Dataset::fingerprint(), so that a run
/// continues only with the same data. Its configuration has kOwn instead of the name of a model or
/// data:
///
///
///     rubato::RunConfiguration configuration{.data = std::string(rubato::kOwn),
///                                            .model = std::string(rubato::kOwn)};
///     rubato::Run run(configuration,
///                     rubato::own_workload({.model = rubato::model_factory<Net>(),
///                                           .loss = rubato::cross_entropy_loss(),
///                                           .train = rubato::make_dataset({inputs}, {targets})},
///                                          rubato::torch_options(configuration)));
///
/// Throws Error if the model, the loss or the training data are missing.
[[nodiscard]] std::shared_ptr<const Workload> own_workload(OwnWorkload own,
                                                           const TorchOptions& options = {});

/// A workload that libtorch computes (Engine::libtorch): a model of TorchScript, or any built-in
/// one but quadratic. Throws Error as LoadWorkload does, and for a model that libtorch does not
/// compute.
[[nodiscard]] std::shared_ptr<const Workload> torch_workload(const RunConfiguration& configuration);

/// Converts the options of a configuration to the library's.
[[nodiscard]] TorchOptions torch_options(const RunConfiguration& configuration);

}  // namespace rubato
