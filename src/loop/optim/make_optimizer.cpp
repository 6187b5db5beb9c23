#include "make_optimizer.hpp"

#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "adagrad.hpp"
#include "adam.hpp"
#include "base/core/check.hpp"
#include "ranges.hpp"
#include "rmsprop.hpp"
#include "sgd.hpp"

namespace rubato {

template <class T>
Lookahead<T>::Lookahead(std::unique_ptr<FlatOptimizer<T>> fast, const LookaheadOptions& options,
                        ParameterLayout layout)
    : fast_(std::move(fast)), options_(options), layout_(std::move(layout)) {
  if (options.k < 1) throw Error(fmt::format("Lookahead's k {}: at least 1 is needed", options.k));
  if (!(options.alpha > 0 && options.alpha <= 1)) {
    throw Error(fmt::format("Lookahead's alpha {}: accepted are values above 0 and up to 1",
                            options.alpha));
  }
}

template <class T>
void Lookahead<T>::step(const Update<T>& update, Workers& workers) {
  const bool first = slow_.empty();
  if (!first && slow_.size() != update.parameters.size()) {
    throw Error("Lookahead's slow weights are those of another model");
  }
  if (first && options_.start == LookaheadStart::before_first_update) {
    slow_.assign(update.parameters.begin(), update.parameters.end());
  }
  fast_->step(update, workers);
  if (first && options_.start == LookaheadStart::after_first_update) {
    slow_.assign(update.parameters.begin(), update.parameters.end());
    return;
  }
  if (++updates_ % options_.k == 0) meet(update, workers);
}

template <class T>
void Lookahead<T>::meet(const Update<T>& update, Workers& workers) {
  const auto alpha = static_cast<T>(options_.alpha);
  const auto meet_in = [&](std::size_t first, std::size_t last) {
    workers.for_each_range(last - first, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = first + begin; i < first + end; ++i) {
        slow_[i] += alpha * (update.parameters[i] - slow_[i]);
        update.parameters[i] = slow_[i];
      }
    });
  };
  if (update.unreached.empty()) return meet_in(0, slow_.size());
  for_each_layer(layout_.layers(), update.unreached, [&](std::size_t layer, bool reached) {
    if (reached) meet_in(layer == 0 ? 0 : layout_.layer_ends[layer - 1], layout_.layer_ends[layer]);
  });
}

template <class T>
void Lookahead<T>::visit_state(StateVisitor& state) {
  fast_->visit_state(state);
  state.list("lookahead.slow", slow_);
  state.count("lookahead.updates", updates_);
}

template class Lookahead<float>;
template class Lookahead<double>;

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
