#pragma once

#include <rubato/model/model.hpp>
#include <rubato/runtime/workers.hpp>
#include <rubato/train/dataset.hpp>
#include <rubato/train/records.hpp>

#include "replica_set.hpp"

namespace rubato {

/// Evaluates the model on a data set, on all threads; the same bits for every number of them.
[[nodiscard]] Evaluation evaluate(ReplicaSet& replicas, const Loss& loss,
                                  const TensorDataset& dataset, Workers& workers);

}  // namespace rubato
