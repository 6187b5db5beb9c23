#pragma once

#include <string_view>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/loop/objective.hpp>
#include <rubato/loop/records.hpp>
#include <rubato/loop/training_options.hpp>
#include <rubato/loop/workers.hpp>

#include "replica_set.hpp"

namespace rubato {

/// Evaluates the model on a data set, on all threads, with the same bits for every number of
/// threads. Throws TrainingError; `when` is a phrase for messages: " after epoch 1".
[[nodiscard]] Evaluation evaluate(ReplicaSet& replicas, const Loss& loss, const Dataset& dataset,
                                  Workers& workers, const EvaluationOptions& options,
                                  const ReplacedOperators& operators, std::string_view when);

/// The outputs of the model for all samples of a data set, in their order, computed on all threads,
/// with the same bits for every number of threads. Throws TrainingError.
[[nodiscard]] Tensors predict(ReplicaSet& replicas, const Dataset& dataset, Workers& workers,
                              const ReplacedOperators& operators);

}  // namespace rubato
