#include "conflicts.hpp"

#include <fmt/format.h>

#include <rubato/base/error.hpp>

namespace rubato {

void require_compatible(const TrainOptions& options, const Rule& rule,
                        const MethodFacts& optimizer) {
  if (options.clip_norm && options.clip_value) {
    throw Refused("clip_value", "gradients are clipped by their norm already", "one of them");
  }
  if (optimizer.squares) {
    // Clipping by norm multiplies the gradients of all minibatches alike. Nothing else that changes
    // their mean can be done to their squares.
    constexpr const char* kWhy = "the squares of minibatches' gradients are known as a sum";
    constexpr const char* kAccepted = "clipping by norm, or second-moment=mean";
    if (options.clip_value) throw Refused("clip_value", kWhy, kAccepted);
    if (!options.gradient_transforms.empty()) throw Refused("transform", kWhy, kAccepted);
  }
  if (rule.reduction() == GradientReduction::sum && !optimizer.follows_sums) {
    throw Refused("rule",
                  fmt::format("{} sums gradients, which the optimizer cannot follow", rule.name()),
                  "optimizer sgd or lars");
  }
  if (const OwnReducer& own = options.own_reducer; own && options.exact && !own.reproducible) {
    throw Refused("reduce",
                  fmt::format("{} does not promise the same bits for every number of threads and "
                              "cores",
                              own.name),
                  "exact=false, or OwnReducer::reproducible if its sum has the order documented "
                  "there");
  }
}

}  // namespace rubato
