#pragma once

#include <memory>
#include <vector>

#include <rubato/loop/optimizer.hpp>

namespace rubato {

/// Throws Error for an option of the optimizer or of a group that is out of range.
void require_valid(const OptimizerOptions& options, const std::vector<GroupOptions>& groups);

/// Makes the optimizer of that kind. Throws Error for an option out of range, also of a group.
template <class T>
[[nodiscard]] std::unique_ptr<FlatOptimizer<T>> make_optimizer(const OptimizerOptions& options,
                                                               const ParameterLayout& layout,
                                                               std::vector<GroupOptions> groups);

/// The number of values that the optimizer remembers for each parameter: 1 for a momentum, 2 for
/// Adam.
[[nodiscard]] int remembered_values(const OptimizerOptions& options,
                                    const std::vector<GroupOptions>& groups);

extern template std::unique_ptr<FlatOptimizer<float>> make_optimizer<float>(
    const OptimizerOptions&, const ParameterLayout&, std::vector<GroupOptions>);
extern template std::unique_ptr<FlatOptimizer<double>> make_optimizer<double>(
    const OptimizerOptions&, const ParameterLayout&, std::vector<GroupOptions>);

}  // namespace rubato
