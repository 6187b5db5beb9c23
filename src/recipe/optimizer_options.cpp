#include <cmath>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/core/spec.hpp>
#include <rubato/recipe/optimizer_options.hpp>

namespace rubato {

namespace {

void require(bool holds, std::string_view what, double value, std::string_view accepted) {
  if (holds && std::isfinite(value)) return;
  throw Error(fmt::format("{} {}: accepted are values {}", what, value, accepted));
}

std::optional<MomentumForm> form_of(Spec& spec, std::optional<MomentumForm> fallback) {
  const std::string form = spec.text("form", "");
  return spec.has("form") ? parse_choice("form of momentum", form, kMomentumForms) : fallback;
}

}  // namespace

OptimizerOptions parse_optimizer(std::string_view text, const OptimizerOptions& defaults) {
  Spec spec(text);
  OptimizerOptions options = defaults;
  options.kind = parse_choice("optimizer", spec.name(), kOptimizers);
  switch (options.kind) {
    case OptimizerKind::sgd:
      options.momentum_form = form_of(spec, options.momentum_form);
      break;
    case OptimizerKind::lars:
      options.momentum_form = form_of(spec, options.momentum_form);
      options.trust = spec.real("trust", options.trust, kPositive);
      break;
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      options.beta1 = spec.real("beta1", options.beta1, kBelowOne);
      options.beta2 = spec.real("beta2", options.beta2, kBelowOne);
      options.epsilon = spec.real("eps", options.epsilon, kNotNegative);
      options.amsgrad = spec.flag("amsgrad", options.amsgrad);
      break;
    case OptimizerKind::rmsprop:
      options.alpha = spec.real("alpha", options.alpha, kBelowOne);
      options.epsilon = spec.real("eps", options.epsilon, kNotNegative);
      options.centered = spec.flag("centered", options.centered);
      break;
    case OptimizerKind::adagrad:
      constexpr double kAdagradEpsilon = 1e-10;
      options.epsilon = spec.real("eps", kAdagradEpsilon, kNotNegative);
      options.lr_decay = spec.real("lr-decay", options.lr_decay, kNotNegative);
      options.initial_accumulator = spec.real("initial", options.initial_accumulator, kNotNegative);
      break;
  }
  spec.finish();
  return options;
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
    throw Error(fmt::format("Nesterov momentum is of sgd, not of {}",
                            choice_name(kOptimizers, options.kind)));
  }
  if (options.nesterov && options.momentum == 0) {
    throw Error("Nesterov momentum needs a momentum above 0");
  }
  if (options.momentum_form && options.kind != OptimizerKind::sgd &&
      options.kind != OptimizerKind::lars) {
    throw Error(fmt::format("the form of momentum is of sgd and lars, not of {}",
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

}  // namespace rubato
