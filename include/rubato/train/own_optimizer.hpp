#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <rubato/optim/flat_optimizer.hpp>
#include <rubato/train/trained_array.hpp>

namespace rubato {

/// What an optimizer is made for.
struct OptimizerParts {
  ParameterLayout layout;
  /// In the order of the layout. The arrays outlive the optimizer.
  std::vector<TrainedArray> trained;
  /// Of each parameter group.
  std::vector<GroupOptions> groups;
};

/// Makes an optimizer of the user's own, for parameters of either type.
struct OwnOptimizer {
  std::function<std::unique_ptr<FlatOptimizer<float>>(const OptimizerParts& parts)> of_float{};
  std::function<std::unique_ptr<FlatOptimizer<double>>(const OptimizerParts& parts)> of_double{};
  /// How many values it remembers of each parameter, for the memory that training is known to need
  /// before it begins; 0 where nobody says.
  int remembered = 0;

  [[nodiscard]] explicit operator bool() const { return of_float || of_double; }
};

}  // namespace rubato
