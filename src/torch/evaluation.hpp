#pragma once

#include <string_view>

#include <rubato/model/model.hpp>
#include <rubato/recipe/own_operators.hpp>
#include <rubato/runtime/workers.hpp>
#include <rubato/torch/dataset.hpp>
#include <rubato/train/objective.hpp>
#include <rubato/train/records.hpp>

#include "replica_set.hpp"

namespace rubato {

/// Evaluates the model on a data set, on all threads; the same bits for every number of them.
/// Throws TrainingError; `when` says when it is, for people: " after epoch 1".
[[nodiscard]] Evaluation evaluate(ReplicaSet& replicas, const Loss& loss, const Dataset& dataset,
                                  Workers& workers, const EvaluationOptions& options,
                                  const OwnOperators& operators, std::string_view when);

/// The outputs of the model for all samples of a data set, in their order, computed on all threads:
/// the same bits for every number of them. Throws TrainingError.
[[nodiscard]] Tensors predict(ReplicaSet& replicas, const Dataset& dataset, Workers& workers,
                              const OwnOperators& operators);

}  // namespace rubato
