#include "torch/make_torch_optimizer.hpp"

#include <tuple>
#include <utility>

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>

#include <rubato/torch/torch_optimizer.hpp>

#include "core/check.hpp"
#include "optim/layer_rates.hpp"
#include "optim/make_optimizer.hpp"

namespace rubato {

namespace {

namespace to = torch::optim;

using ParamGroups = std::vector<to::OptimizerParamGroup>;

// Sets what differs between the groups, in libtorch's own options.
template <class Options, class Set>
void set_each(ParamGroups& param_groups, const Options& common, const Set& set) {
  for (std::size_t i = 0; i < param_groups.size(); ++i) {
    auto options = std::make_unique<Options>(common);
    set(i, *options);
    param_groups[i].set_options(std::move(options));
  }
}

TorchOptimizerMaker maker_of(const OptimizerOptions& options, const ParameterLayout& layout,
                             const std::vector<GroupOptions>& groups) {
  return [&](ParamGroups params) -> std::unique_ptr<to::Optimizer> {
    const auto group = [&](std::size_t i) { return group_of(groups, layout.layer_groups[i]); };
    const auto decay = [&](std::size_t i, auto& of_tensor) {
      of_tensor.weight_decay(group(i).weight_decay.value_or(options.weight_decay));
    };
    switch (options.kind) {
      case OptimizerKind::adam: {
        const auto common = to::AdamOptions()
                                .betas(std::make_tuple(options.beta1, options.beta2))
                                .eps(options.epsilon)
                                .amsgrad(options.amsgrad);
        set_each(params, common, decay);
        return std::make_unique<to::Adam>(std::move(params), common);
      }
      case OptimizerKind::adamw: {
        const auto common = to::AdamWOptions()
                                .betas(std::make_tuple(options.beta1, options.beta2))
                                .eps(options.epsilon)
                                .amsgrad(options.amsgrad);
        set_each(params, common, decay);
        return std::make_unique<to::AdamW>(std::move(params), common);
      }
      case OptimizerKind::rmsprop: {
        const auto common = to::RMSpropOptions()
                                .alpha(options.alpha)
                                .eps(options.epsilon)
                                .centered(options.centered);
        set_each(params, common, [&](std::size_t i, to::RMSpropOptions& of_tensor) {
          decay(i, of_tensor);
          of_tensor.momentum(group(i).momentum.value_or(options.momentum));
        });
        return std::make_unique<to::RMSprop>(std::move(params), common);
      }
      case OptimizerKind::adagrad: {
        const auto common = to::AdagradOptions()
                                .lr_decay(options.lr_decay)
                                .initial_accumulator_value(options.initial_accumulator)
                                .eps(options.epsilon);
        set_each(params, common, decay);
        return std::make_unique<to::Adagrad>(std::move(params), common);
      }
      case OptimizerKind::sgd:
      case OptimizerKind::lars:
        break;
    }
    RUBATO_CHECK(false, "SGD and LARS are rubato's own");
    return nullptr;
  };
}

}  // namespace

template <class T>
std::unique_ptr<FlatOptimizer<T>> make_torch_optimizer(const OptimizerOptions& options,
                                                       const ParameterLayout& layout,
                                                       const std::vector<TrainedArray>& trained,
                                                       std::vector<GroupOptions> groups) {
  if (options.kind == OptimizerKind::sgd || options.kind == OptimizerKind::lars) {
    return make_optimizer<T>(options, layout, std::move(groups));
  }
  require_valid(options, groups);
  return std::make_unique<TorchOptimizer<T>>(layout, trained, maker_of(options, layout, groups),
                                             groups);
}

template std::unique_ptr<FlatOptimizer<float>> make_torch_optimizer<float>(
    const OptimizerOptions&, const ParameterLayout&, const std::vector<TrainedArray>&,
    std::vector<GroupOptions>);
template std::unique_ptr<FlatOptimizer<double>> make_torch_optimizer<double>(
    const OptimizerOptions&, const ParameterLayout&, const std::vector<TrainedArray>&,
    std::vector<GroupOptions>);

}  // namespace rubato
