#include "make_optimizer.hpp"

#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/check.hpp"
#include "loop/optim/methods/adagrad.hpp"
#include "loop/optim/methods/adam.hpp"
#include "loop/optim/methods/lars.hpp"
#include "loop/optim/methods/rmsprop.hpp"
#include "loop/optim/methods/sgd.hpp"

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

namespace {

// Calls use.operator()<Optimizer>(its options) for the kind that is asked for.
template <class T, class Use>
auto with_kind(const OptimizerOptions& options, const Use& use) {
  switch (options.kind) {
    case OptimizerKind::sgd:
      return use.template operator()<Sgd<T>>(
          SgdOptions{.momentum = options.momentum,
                     .weight_decay = options.weight_decay,
                     .nesterov = options.nesterov,
                     .momentum_form = options.momentum_form.value_or(SgdOptions().momentum_form)});
    case OptimizerKind::lars:
      return use.template operator()<Lars<T>>(LarsOptions{
          .momentum = options.momentum,
          .weight_decay = options.weight_decay,
          .trust = options.trust,
          .momentum_form = options.momentum_form.value_or(LarsOptions().momentum_form)});
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return use.template operator()<Adam<T>>(
          AdamOptions{.beta1 = options.beta1,
                      .beta2 = options.beta2,
                      .epsilon = options.epsilon,
                      .amsgrad = options.amsgrad,
                      .weight_decay = options.weight_decay,
                      .decoupled = options.kind == OptimizerKind::adamw});
    case OptimizerKind::rmsprop:
      return use.template operator()<Rmsprop<T>>(
          RmspropOptions{.alpha = options.alpha,
                         .epsilon = options.epsilon,
                         .centered = options.centered,
                         .momentum = options.momentum,
                         .weight_decay = options.weight_decay});
    case OptimizerKind::adagrad:
      break;
  }
  RUBATO_CHECK(options.kind == OptimizerKind::adagrad, "every kind of optimizer is made");
  return use.template operator()<Adagrad<T>>(
      AdagradOptions{.lr_decay = options.lr_decay,
                     .initial_accumulator = options.initial_accumulator,
                     .epsilon = options.epsilon,
                     .weight_decay = options.weight_decay});
}

}  // namespace

template <class T>
std::unique_ptr<FlatOptimizer<T>> make_optimizer(const OptimizerOptions& options,
                                                 const ParameterLayout& layout,
                                                 std::vector<GroupOptions> groups) {
  require_valid(options, groups);
  return with_kind<T>(options, [&]<class Optimizer>(const auto& own) {
    return std::unique_ptr<FlatOptimizer<T>>(
        std::make_unique<Optimizer>(layout, own, std::move(groups)));
  });
}

int remembered_values(const OptimizerOptions& options, const std::vector<GroupOptions>& groups) {
  // The number is the same for float and double.
  return with_kind<float>(options, [&]<class Optimizer>(const auto& own) {
    return Optimizer::remembered(own, groups);
  });
}

template std::unique_ptr<FlatOptimizer<float>> make_optimizer<float>(const OptimizerOptions&,
                                                                     const ParameterLayout&,
                                                                     std::vector<GroupOptions>);
template std::unique_ptr<FlatOptimizer<double>> make_optimizer<double>(const OptimizerOptions&,
                                                                       const ParameterLayout&,
                                                                       std::vector<GroupOptions>);

}  // namespace rubato
