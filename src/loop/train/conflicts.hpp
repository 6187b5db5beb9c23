#pragma once

#include <rubato/loop/trainer.hpp>
#include <rubato/numbers/rule.hpp>

#include "loop/optim/make_optimizer.hpp"

namespace rubato {

/// Throws Refused for choices of a step that contradict each other: of `options`, it reads bounds
/// and transforms of the gradient, and the reducer; of `optimizer`, whether it follows sums and
/// needs squares.
void require_compatible(const TrainOptions& options, const Rule& rule,
                        const MethodFacts& optimizer);

}  // namespace rubato
