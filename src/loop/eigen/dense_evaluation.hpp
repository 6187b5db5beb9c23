#pragma once

#include <rubato/loop/objective.hpp>
#include <rubato/loop/workers.hpp>

#include "dense_pass.hpp"

namespace rubato {

/// Evaluates on all threads, to the same bits for every number of threads.
template <class T>
[[nodiscard]] Evaluation evaluate(const DenseModel<T>& model, const DenseDataset<T>& dataset,
                                  Workers& workers, const EvaluationOptions& options);

extern template Evaluation evaluate(const DenseModel<float>&, const DenseDataset<float>&, Workers&,
                                    const EvaluationOptions&);
extern template Evaluation evaluate(const DenseModel<double>&, const DenseDataset<double>&,
                                    Workers&, const EvaluationOptions&);

}  // namespace rubato
