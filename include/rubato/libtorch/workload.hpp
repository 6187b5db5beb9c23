#pragma once

#include <memory>
#include <string>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/runs/workload.hpp>

namespace rubato {

/// A model of libtorch, what it is trained on and by, where a program has them itself.
struct OwnWorkload {
  ModelFactory model;
  Loss loss;
  std::shared_ptr<const Dataset> train;
  /// Evaluated after each epoch; null is none.
  std::shared_ptr<const Dataset> test{};
  /// Of the test set; empty is the training loss.
  Loss test_loss{};
  /// For people, in a line; empty says how many samples there are.
  std::string description{};
};

/// A program's own model and data as the workload of a Run, which keeps them as long as its
/// trainers need them. A state knows the data by Dataset::fingerprint(), so that a run goes on with
/// the same data alone. Its configuration has kOwn where it would name a model or data that it has
/// not:
///
///     rubato::RunConfiguration configuration{.data = std::string(rubato::kOwn),
///                                            .model = std::string(rubato::kOwn)};
///     rubato::Run run(configuration,
///                     rubato::own_workload({.model = rubato::model_factory<Net>(),
///                                           .loss = rubato::cross_entropy_loss(),
///                                           .train = rubato::make_dataset({inputs}, {targets})},
///                                          rubato::torch_options(configuration)));
///
/// Throws Error where there is no model, no loss or no training data.
[[nodiscard]] std::shared_ptr<const Workload> own_workload(OwnWorkload own,
                                                           const TorchOptions& options = {});

/// What libtorch computes (Engine::libtorch): models of TorchScript, and all built-in ones but
/// quadratic. Throws Error as LoadWorkload does, and for a model that libtorch does not compute.
[[nodiscard]] std::shared_ptr<const Workload> torch_workload(const RunConfiguration& configuration);

/// The library's options for those of a configuration.
[[nodiscard]] TorchOptions torch_options(const RunConfiguration& configuration);

}  // namespace rubato
