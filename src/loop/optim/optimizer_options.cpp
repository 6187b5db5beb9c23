#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fnmatch.h>

#include <rubato/base/error.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/loop/optimizer.hpp>

#include "make_optimizer.hpp"

namespace rubato {

namespace {

void require(bool holds, std::string_view what, double value, std::string_view accepted) {
  if (holds && std::isfinite(value)) return;
  throw Error(fmt::format("{} {}: accepted are values {}", what, value, accepted));
}

// The arguments of each method, with the values of `defaults` if it is the same method.

std::optional<MomentumForm> read_form(Spec& spec, const std::optional<MomentumForm>& given,
                                      Unset unset) {
  const auto form = spec.choice("form", unset, kMomentumForms);
  return form ? form : given;
}

OptimizerMethod read_sgd(Spec& spec, const OptimizerMethod& defaults) {
  auto options = method_options<SgdOptions>(defaults);
  options.momentum_form = read_form(spec, options.momentum_form, {"the rule's or pytorch"});
  return options;
}

OptimizerMethod read_lars(Spec& spec, const OptimizerMethod& defaults) {
  auto options = method_options<LarsOptions>(defaults);
  options.trust = spec.real("trust", options.trust, kPositive);
  options.momentum_form = read_form(spec, options.momentum_form, {"the rule's or mxnet"});
  return options;
}

template <bool Decoupled>
OptimizerMethod read_adam(Spec& spec, const OptimizerMethod& defaults) {
  auto options = method_options<AdamOptions>(defaults);
  options.beta1 = spec.real("beta1", options.beta1, kBelowOne);
  options.beta2 = spec.real("beta2", options.beta2, kBelowOne);
  options.epsilon = spec.real("eps", options.epsilon, kNotNegative);
  options.amsgrad = spec.flag("amsgrad", options.amsgrad);
  options.decoupled = Decoupled;
  return options;
}

OptimizerMethod read_rmsprop(Spec& spec, const OptimizerMethod& defaults) {
  auto options = method_options<RmspropOptions>(defaults);
  options.alpha = spec.real("alpha", options.alpha, kBelowOne);
  options.epsilon = spec.real("eps", options.epsilon, kNotNegative);
  options.centered = spec.flag("centered", options.centered);
  return options;
}

OptimizerMethod read_adagrad(Spec& spec, const OptimizerMethod& defaults) {
  auto options = method_options<AdagradOptions>(defaults);
  options.epsilon = spec.real("eps", options.epsilon, kNotNegative);
  options.lr_decay = spec.real("lr-decay", options.lr_decay, kNotNegative);
  options.initial_accumulator = spec.real("initial", options.initial_accumulator, kNotNegative);
  return options;
}

struct OptimizerRow {
  std::string_view name;
  std::string_view help;
  OptimizerMethod (*read)(Spec& spec, const OptimizerMethod& defaults);
};

constexpr std::array<OptimizerRow, kOptimizerNames.size()> kOptimizers{
    {{kOptimizerNames[0],
      "with --momentum and --nesterov; form says where the rate enters momentum", read_sgd},
     {kOptimizerNames[1],
      "a rate for each layer, with --momentum (You et al. 2017); form as for sgd", read_lars},
     {kOptimizerNames[2],
      "with moments of the gradient (Kingma and Ba 2015); amsgrad by Reddi et al. 2018",
      read_adam<false>},
     {kOptimizerNames[3], "adam with decoupled weight decay (Loshchilov and Hutter 2019)",
      read_adam<true>},
     {kOptimizerNames[4], "with --momentum (Tieleman and Hinton 2012)", read_rmsprop},
     {kOptimizerNames[5], "with sums of squares (Duchi et al. 2011)", read_adagrad}}};

void require_factors(double momentum, double weight_decay) {
  require(momentum >= 0 && momentum < 1, "momentum", momentum, "from 0 to below 1");
  require(weight_decay >= 0, "weight decay", weight_decay, "of at least 0");
}

void require_decay_rate(std::string_view what, double value) {
  require(value >= 0 && value < 1, what, value, "from 0 to below 1");
}

void require_epsilon(double epsilon) {
  require(epsilon >= 0, "epsilon", epsilon, "of at least 0");
}

void require_method(const SgdOptions& /*options*/) {}
void require_method(const LarsOptions& options) {
  require(options.trust > 0, "trust coefficient", options.trust, "above 0");
}
void require_method(const AdamOptions& options) {
  require_decay_rate("beta1", options.beta1);
  require_decay_rate("beta2", options.beta2);
  require_epsilon(options.epsilon);
}
void require_method(const RmspropOptions& options) {
  require_decay_rate("alpha", options.alpha);
  require_epsilon(options.epsilon);
}
void require_method(const AdagradOptions& options) {
  require_epsilon(options.epsilon);
  require(options.lr_decay >= 0, "learning-rate decay", options.lr_decay, "of at least 0");
  require(options.initial_accumulator >= 0, "initial accumulator", options.initial_accumulator,
          "of at least 0");
}

}  // namespace

OptimizerOptions parse_optimizer(std::string_view text, const OptimizerOptions& defaults) {
  Spec spec(text);
  OptimizerOptions options = defaults;
  options.method = find_row("optimizer", spec.name(), kOptimizers).read(spec, defaults.method);
  spec.finish();
  return options;
}

std::vector<Strategy> optimizers() {
  return strategies_of(kOptimizers, [](const OptimizerRow& row, Spec& spec) {
    static_cast<void>(row.read(spec, {}));
  });
}

std::string_view optimizer_name(const OptimizerMethod& method) {
  // The names are in the order of the methods, with AdamW after Adam.
  constexpr std::size_t kAdam = 2;
  const std::size_t i = method.index();
  const bool later = i > kAdam || method_options<AdamOptions>(method).decoupled;
  return kOptimizerNames.at(later ? i + 1 : i);
}

void require_valid(const OptimizerOptions& options) {
  require_factors(options.momentum, options.weight_decay);
  if (method_options<SgdOptions>(options.method).nesterov && options.momentum == 0) {
    throw Error("Nesterov momentum needs a momentum above 0");
  }
  std::visit([](const auto& method) { require_method(method); }, options.method);
}

void require_valid(const OptimizerOptions& options, const std::vector<GroupOptions>& groups) {
  require_valid(options);
  for (const GroupOptions& group : groups) {
    require_factors(group.momentum.value_or(options.momentum),
                    group.weight_decay.value_or(options.weight_decay));
    if (!(group.learning_rate_factor >= 0)) {
      throw Error(
          fmt::format("learning-rate factor {} of a group: accepted are values of at least "
                      "0",
                      group.learning_rate_factor));
    }
  }
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
