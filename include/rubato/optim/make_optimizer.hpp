#pragma once

#include <memory>
#include <vector>

#include <rubato/model/shared_state.hpp>
#include <rubato/optim/flat_optimizer.hpp>
#include <rubato/recipe/optimizer_options.hpp>

namespace rubato {

/// The optimizer of that kind for the parameters of `shared`, which must outlive it: Sgd and Lars
/// of its own, the others libtorch's. Throws Error for an option out of its range, also of a group.
template <class T>
[[nodiscard]] std::unique_ptr<FlatOptimizer<T>> make_optimizer(const OptimizerOptions& options,
                                                               const ParameterLayout& layout,
                                                               const SharedState& shared,
                                                               std::vector<GroupOptions> groups);

extern template std::unique_ptr<FlatOptimizer<float>> make_optimizer<float>(
    const OptimizerOptions&, const ParameterLayout&, const SharedState&, std::vector<GroupOptions>);
extern template std::unique_ptr<FlatOptimizer<double>> make_optimizer<double>(
    const OptimizerOptions&, const ParameterLayout&, const SharedState&, std::vector<GroupOptions>);

}  // namespace rubato
