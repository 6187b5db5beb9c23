#include "optim/make_optimizer.hpp"

#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>

#include "optim/lars.hpp"
#include "optim/sgd.hpp"

namespace rubato {

void require_valid(const OptimizerOptions& options, const std::vector<GroupOptions>& groups) {
  require_valid(options);
  for (const GroupOptions& group : groups) {
    OptimizerOptions of_group = options;
    of_group.weight_decay = group.weight_decay.value_or(options.weight_decay);
    of_group.momentum = group.momentum.value_or(options.momentum);
    // Nesterov's form without momentum is plain SGD in a single group.
    of_group.nesterov = false;
    require_valid(of_group);
    if (!(group.learning_rate_factor >= 0)) {
      throw Error(
          fmt::format("learning-rate factor {} of a group: accepted are values of at least "
                      "0",
                      group.learning_rate_factor));
    }
  }
}

template <class T>
std::unique_ptr<FlatOptimizer<T>> make_optimizer(const OptimizerOptions& options,
                                                 const ParameterLayout& layout,
                                                 std::vector<GroupOptions> groups) {
  require_valid(options, groups);
  switch (options.kind) {
    case OptimizerKind::sgd:
      return std::make_unique<Sgd<T>>(
          layout,
          SgdOptions{.momentum = options.momentum,
                     .weight_decay = options.weight_decay,
                     .nesterov = options.nesterov,
                     .momentum_form = options.momentum_form.value_or(SgdOptions().momentum_form)},
          std::move(groups));
    case OptimizerKind::lars:
      return std::make_unique<Lars<T>>(
          layout,
          LarsOptions{.momentum = options.momentum,
                      .weight_decay = options.weight_decay,
                      .trust = options.trust,
                      .momentum_form = options.momentum_form.value_or(LarsOptions().momentum_form)},
          std::move(groups));
    default:
      throw Error(fmt::format("optimizer {} is libtorch's; accepted for this model: sgd, lars",
                              choice_name(kOptimizers, options.kind)));
  }
}

template std::unique_ptr<FlatOptimizer<float>> make_optimizer<float>(const OptimizerOptions&,
                                                                     const ParameterLayout&,
                                                                     std::vector<GroupOptions>);
template std::unique_ptr<FlatOptimizer<double>> make_optimizer<double>(const OptimizerOptions&,
                                                                       const ParameterLayout&,
                                                                       std::vector<GroupOptions>);

}  // namespace rubato
