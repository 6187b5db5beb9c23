#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/loop/objective.hpp>
#include <rubato/loop/workers.hpp>

#include "replica_set.hpp"

namespace rubato {

/// Parts of an objective of libtorch.
struct TorchParts {
  ModelFactory model;
  Loss loss;
  std::shared_ptr<const Dataset> train;
  TorchOptions options;
  /// Seed of the initial values.
  std::uint64_t seed = 0;
};

/// The part of an objective of libtorch that does not depend on the type of its parameters.
class TorchObjective {
 public:
  TorchObjective(const TorchObjective&) = delete;
  TorchObjective& operator=(const TorchObjective&) = delete;
  virtual ~TorchObjective() = default;

  /// Throws Error if there is no data set, or no sample in it.
  void set_test(std::shared_ptr<const Dataset> test, Loss loss);
  [[nodiscard]] Evaluation evaluate(const Dataset& dataset, Workers& workers,
                                    const EvaluationOptions& options, std::string_view when);
  [[nodiscard]] Tensors predict(const Dataset& dataset, Workers& workers);
  [[nodiscard]] const SharedState& state() const { return replicas_->state(); }
  [[nodiscard]] const TorchOptions& options() const { return parts_.options; }

 protected:
  TorchObjective(TorchParts parts, std::unique_ptr<ReplicaSet> replicas);

  [[nodiscard]] const Loss& test_loss() const { return test_loss_ ? test_loss_ : parts_.loss; }
  [[nodiscard]] std::string configuration_text() const;
  void try_test(Replica& replica, std::int64_t minibatch_size) const;

  TorchParts parts_;
  std::shared_ptr<const Dataset> test_;
  Loss test_loss_;
  std::unique_ptr<ReplicaSet> replicas_;
};

/// Makes the objective, and sets libtorch's number of intra-op threads to 1. Throws Error for
/// missing or empty data, for a model that cannot be shared, and for a precision that the machine
/// or the model does not support.
[[nodiscard]] std::unique_ptr<Objective> make_torch_objective(TorchParts parts);

}  // namespace rubato
