#pragma once

#include <rubato/loop/trainer.hpp>
#include <rubato/numbers/rule.hpp>

namespace rubato {

/// The facts about an optimizer that other choices depend on.
struct OptimizerTraits {
  /// FlatOptimizer::follows_sums().
  bool follows_sums = true;
  /// FlatOptimizer::needs_minibatch_squares().
  bool squares = false;
};

/// Throws Refused for choices of a step that contradict each other: of `options`, it reads bounds
/// and transforms of the gradient, and the reducer.
void require_compatible(const TrainOptions& options, const Rule& rule,
                        const OptimizerTraits& optimizer);

}  // namespace rubato
