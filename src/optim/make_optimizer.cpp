#include "optim/make_optimizer.hpp"

#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>

#include "core/check.hpp"
#include "optim/adagrad.hpp"
#include "optim/adam.hpp"
#include "optim/lars.hpp"
#include "optim/rmsprop.hpp"
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
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return std::make_unique<Adam<T>>(
          layout,
          AdamOptions{.beta1 = options.beta1,
                      .beta2 = options.beta2,
                      .epsilon = options.epsilon,
                      .amsgrad = options.amsgrad,
                      .weight_decay = options.weight_decay,
                      .decoupled = options.kind == OptimizerKind::adamw},
          std::move(groups));
    case OptimizerKind::rmsprop:
      return std::make_unique<Rmsprop<T>>(layout,
                                          RmspropOptions{.alpha = options.alpha,
                                                         .epsilon = options.epsilon,
                                                         .centered = options.centered,
                                                         .momentum = options.momentum,
                                                         .weight_decay = options.weight_decay},
                                          std::move(groups));
    case OptimizerKind::adagrad:
      return std::make_unique<Adagrad<T>>(
          layout,
          AdagradOptions{.lr_decay = options.lr_decay,
                         .initial_accumulator = options.initial_accumulator,
                         .epsilon = options.epsilon,
                         .weight_decay = options.weight_decay},
          std::move(groups));
  }
  RUBATO_CHECK(false, "every kind of optimizer has its row");
  return nullptr;
}

template std::unique_ptr<FlatOptimizer<float>> make_optimizer<float>(const OptimizerOptions&,
                                                                     const ParameterLayout&,
                                                                     std::vector<GroupOptions>);
template std::unique_ptr<FlatOptimizer<double>> make_optimizer<double>(const OptimizerOptions&,
                                                                       const ParameterLayout&,
                                                                       std::vector<GroupOptions>);

}  // namespace rubato
