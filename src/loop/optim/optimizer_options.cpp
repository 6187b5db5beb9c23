#include <cmath>

#include <fmt/format.h>
#include <fnmatch.h>

#include <rubato/base/error.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/loop/optimizer.hpp>

#include "base/core/text/options_row.hpp"

namespace rubato {

namespace {

void require(bool holds, std::string_view what, double value, std::string_view accepted) {
  if (holds && std::isfinite(value)) return;
  throw Error(fmt::format("{} {}: accepted are values {}", what, value, accepted));
}

void read_form(Spec& spec, OptimizerOptions& options, Unset unset) {
  const auto form = spec.choice("form", unset, kMomentumForms);
  if (form) options.momentum_form = form;
}

void read_sgd(Spec& spec, OptimizerOptions& options) {
  read_form(spec, options, {"the rule's or pytorch"});
}

void read_lars(Spec& spec, OptimizerOptions& options) {
  options.trust = spec.real("trust", options.trust, kPositive);
  read_form(spec, options, {"the rule's or mxnet"});
}

void read_adam(Spec& spec, OptimizerOptions& options) {
  options.beta1 = spec.real("beta1", options.beta1, kBelowOne);
  options.beta2 = spec.real("beta2", options.beta2, kBelowOne);
  options.epsilon = spec.real("eps", options.epsilon, kNotNegative);
  options.amsgrad = spec.flag("amsgrad", options.amsgrad);
}

void read_rmsprop(Spec& spec, OptimizerOptions& options) {
  options.alpha = spec.real("alpha", options.alpha, kBelowOne);
  options.epsilon = spec.real("eps", options.epsilon, kNotNegative);
  options.centered = spec.flag("centered", options.centered);
}

void read_adagrad(Spec& spec, OptimizerOptions& options) {
  constexpr double kAdagradEpsilon = 1e-10;
  options.epsilon = spec.real("eps", kAdagradEpsilon, kNotNegative);
  options.lr_decay = spec.real("lr-decay", options.lr_decay, kNotNegative);
  options.initial_accumulator = spec.real("initial", options.initial_accumulator, kNotNegative);
}

using OptimizerRow = OptionsRow<OptimizerOptions, OptimizerKind>;

constexpr std::array<OptimizerRow, kOptimizers.size()> kOptimizerRows{
    options_row(kOptimizers, OptimizerKind::sgd,
                "with --momentum and --nesterov; form says where the rate enters momentum",
                read_sgd),
    options_row(kOptimizers, OptimizerKind::lars,
                "a rate for each layer, with --momentum (You et al. 2017); form as for sgd",
                read_lars),
    options_row(kOptimizers, OptimizerKind::adam,
                "with moments of the gradient (Kingma and Ba 2015); amsgrad by Reddi et al. 2018",
                read_adam),
    options_row(kOptimizers, OptimizerKind::adamw,
                "adam with decoupled weight decay (Loshchilov and Hutter 2019)", read_adam),
    options_row(kOptimizers, OptimizerKind::rmsprop, "with --momentum (Tieleman and Hinton 2012)",
                read_rmsprop),
    options_row(kOptimizers, OptimizerKind::adagrad, "with sums of squares (Duchi et al. 2011)",
                read_adagrad)};

}  // namespace

OptimizerOptions parse_optimizer(std::string_view text, const OptimizerOptions& defaults) {
  return parse_options("optimizer", text, kOptimizerRows, &OptimizerOptions::kind, defaults);
}

std::vector<Strategy> optimizers() {
  return strategies_of(kOptimizerRows);
}

bool has_momentum(OptimizerKind kind) {
  return kind == OptimizerKind::sgd || kind == OptimizerKind::lars ||
         kind == OptimizerKind::rmsprop;
}

void require_valid(const OptimizerOptions& options) {
  require(options.momentum >= 0 && options.momentum < 1, "momentum", options.momentum,
          "from 0 to below 1");
  require(options.weight_decay >= 0, "weight decay", options.weight_decay, "of at least 0");
  if (options.nesterov && options.kind != OptimizerKind::sgd) {
    throw Error(fmt::format("Nesterov momentum applies to sgd only, not to {}",
                            choice_name(kOptimizers, options.kind)));
  }
  if (options.nesterov && options.momentum == 0) {
    throw Error("Nesterov momentum needs a momentum above 0");
  }
  if (options.momentum_form && options.kind != OptimizerKind::sgd &&
      options.kind != OptimizerKind::lars) {
    throw Error(fmt::format("the form of momentum applies to sgd and lars only, not to {}",
                            choice_name(kOptimizers, options.kind)));
  }
  require(options.trust > 0, "trust coefficient", options.trust, "above 0");
  require(options.beta1 >= 0 && options.beta1 < 1, "beta1", options.beta1, "from 0 to below 1");
  require(options.beta2 >= 0 && options.beta2 < 1, "beta2", options.beta2, "from 0 to below 1");
  require(options.alpha >= 0 && options.alpha < 1, "alpha", options.alpha, "from 0 to below 1");
  require(options.epsilon >= 0, "epsilon", options.epsilon, "of at least 0");
  require(options.lr_decay >= 0, "learning-rate decay", options.lr_decay, "of at least 0");
  require(options.initial_accumulator >= 0, "initial accumulator", options.initial_accumulator,
          "of at least 0");
}

namespace {

constexpr GroupOptions kNoDecay{.weight_decay = 0.0, .layer_wise = false};

}  // namespace

ParameterGroup no_decay_for_vectors() {
  return {.name = "vectors",
          .takes = [](const NamedArray& named) { return named.shape.size() <= 1; },
          .options = kNoDecay};
}

ParameterGroup no_decay_for(const std::string& pattern) {
  return {.name = pattern,
          .takes =
              [pattern](const NamedArray& named) {
                return fnmatch(pattern.c_str(), named.name.c_str(), 0) == 0;
              },
          .options = kNoDecay};
}

}  // namespace rubato
