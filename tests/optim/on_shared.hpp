#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <rubato/torch/arrays.hpp>

#include "model/shared_state.hpp"
#include "torch/make_torch_optimizer.hpp"
#include "torch/trained_arrays.hpp"

namespace rubato::test {

/// An optimizer for the parameters of `shared`.
template <class T>
std::unique_ptr<FlatOptimizer<T>> optimizer_on(const OptimizerOptions& options,
                                               const ParameterLayout& layout,
                                               const SharedState& shared,
                                               std::vector<GroupOptions> groups) {
  return make_torch_optimizer<T>(options, layout, trained_arrays(shared), std::move(groups));
}

}  // namespace rubato::test
