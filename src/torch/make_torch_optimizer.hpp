#pragma once

#include <memory>
#include <vector>

#include <rubato/optim/flat_optimizer.hpp>
#include <rubato/recipe/optimizer_options.hpp>
#include <rubato/train/trained_array.hpp>

namespace rubato {

/// The optimizer of that kind for parameters that lie as `trained` says and outlive it: SGD and
/// LARS of rubato's own, the others libtorch's. Throws Error for an option out of its range, also
/// of a group.
template <class T>
[[nodiscard]] std::unique_ptr<FlatOptimizer<T>> make_torch_optimizer(
    const OptimizerOptions& options, const ParameterLayout& layout,
    const std::vector<TrainedArray>& trained, std::vector<GroupOptions> groups);

extern template std::unique_ptr<FlatOptimizer<float>> make_torch_optimizer<float>(
    const OptimizerOptions&, const ParameterLayout&, const std::vector<TrainedArray>&,
    std::vector<GroupOptions>);
extern template std::unique_ptr<FlatOptimizer<double>> make_torch_optimizer<double>(
    const OptimizerOptions&, const ParameterLayout&, const std::vector<TrainedArray>&,
    std::vector<GroupOptions>);

}  // namespace rubato
