#pragma once

#include <cstdint>
#include <string_view>

#include <rubato/model/model.hpp>
#include <rubato/recipe/own_operators.hpp>
#include <rubato/runtime/workers.hpp>
#include <rubato/train/dataset.hpp>
#include <rubato/train/records.hpp>

#include "replica_set.hpp"

namespace rubato {

/// Of TrainOptions, what an evaluation goes by.
struct EvaluationOptions {
  /// More than there are classes are all of them.
  std::int64_t top_k = 0;
  OwnOperators operators{};
};

/// Evaluates the model on a data set, on all threads; the same bits for every number of them.
/// Throws TrainingError; `when` says when it is, for people: " after epoch 1".
[[nodiscard]] Evaluation evaluate(ReplicaSet& replicas, const Loss& loss,
                                  const TensorDataset& dataset, Workers& workers,
                                  const EvaluationOptions& options, std::string_view when);

}  // namespace rubato
