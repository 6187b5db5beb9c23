// Each method lists its numbers once, with names and ranges, in an overload of visit_numbers(),
// through which read_method() parses them and require_valid() checks them; programs set options
// without a text, so parsing alone would not suffice. kOptimizers has one row for each name that
// users can give. AdamW has a row of its own, but it is Adam with a flag and not an alternative of
// OptimizerMethod. Options that only some methods have are read where a requires-expression finds
// the member.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include <fnmatch.h>

#include <rubato/base/error.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/loop/optimizer.hpp>

#include "base/core/throw_error.hpp"
#include "make_optimizer.hpp"

namespace rubato {

namespace {

void require(double value, std::string_view what, const RealRange& range) {
  if (range.holds(value)) return;
  // In a message a range is said of values: "from 0 to below 1".
  std::string_view accepted = range.words;
  accepted.remove_prefix(std::string_view("a number ").size());
  throw_error("{} {}: accepted are values {}", what, value, accepted);
}

// The numbers of each method: visit(key of the argument, name in messages, value, range).

template <class Visit>
void visit_numbers(SgdOptions& /*options*/, const Visit& /*visit*/) {}
template <class Visit>
void visit_numbers(LarsOptions& options, const Visit& visit) {
  visit("trust", "trust coefficient", options.trust, kPositive);
}
template <class Visit>
void visit_numbers(AdamOptions& options, const Visit& visit) {
  visit("beta1", "beta1", options.beta1, kBelowOne);
  visit("beta2", "beta2", options.beta2, kBelowOne);
  visit("eps", "epsilon", options.epsilon, kNotNegative);
}
template <class Visit>
void visit_numbers(RmspropOptions& options, const Visit& visit) {
  visit("alpha", "alpha", options.alpha, kBelowOne);
  visit("eps", "epsilon", options.epsilon, kNotNegative);
}
template <class Visit>
void visit_numbers(AdagradOptions& options, const Visit& visit) {
  visit("eps", "epsilon", options.epsilon, kNotNegative);
  visit("lr-decay", "learning-rate decay", options.lr_decay, kNotNegative);
  visit("initial", "initial accumulator", options.initial_accumulator, kNotNegative);
}

template <class Visit>
void visit_numbers(MuonOptions& options, const Visit& visit) {
  visit("momentum", "momentum", options.momentum, kBelowOne);
  visit("beta1", "beta1", options.beta1, kBelowOne);
  visit("beta2", "beta2", options.beta2, kBelowOne);
  visit("eps", "epsilon", options.epsilon, kNotNegative);
}

constexpr std::int64_t kMostMuonSteps = 100;

// Reads the arguments of a method; without one, an option has the value of `defaults` if that is
// the same method.
template <class Options, bool Decoupled = false>
OptimizerMethod read_method(Spec& spec, const OptimizerMethod& defaults) {
  auto options = method_options<Options>(defaults);
  visit_numbers(options, [&spec](auto key, auto /*name*/, double& value, const RealRange& range) {
    value = spec.real(key, value, range);
  });
  if constexpr (requires { options.momentum_form; }) {
    constexpr bool kLars = std::is_same_v<Options, LarsOptions>;
    const Unset unset{kLars ? "the rule's or mxnet" : "the rule's or pytorch"};
    if (const auto form = spec.choice("form", unset, kMomentumForms)) options.momentum_form = form;
  }
  if constexpr (requires { options.amsgrad; }) {
    options.amsgrad = spec.flag("amsgrad", options.amsgrad);
    options.second_moment = spec.choice("second-moment", options.second_moment, kSecondMoments);
    options.decoupled = Decoupled;
  }
  if constexpr (requires { options.centered; }) {
    options.centered = spec.flag("centered", options.centered);
  }
  if constexpr (std::is_same_v<Options, MuonOptions>) {
    options.nesterov = spec.flag("nesterov", options.nesterov);
    options.steps = spec.whole("steps", options.steps, 1, kMostMuonSteps);
    options.scale = spec.choice("scale", options.scale, kMuonScales);
    const auto pattern = spec.text("adamw", Unset{"none"}, "names of parameters such as '*embed*'");
    if (pattern) options.adamw = *pattern;
  }
  return options;
}

template <class Options, bool Decoupled = false>
bool is_method(const OptimizerMethod& method) {
  return std::holds_alternative<Options>(method) &&
         method_options<AdamOptions>(method).decoupled == Decoupled;
}

struct OptimizerRow {
  std::string_view name;
  std::string_view help;
  OptimizerMethod (*read)(Spec& spec, const OptimizerMethod& defaults);
  bool (*is)(const OptimizerMethod& method);
};

constexpr std::array<OptimizerRow, kOptimizerNames.size()> kOptimizers{
    {{kOptimizerNames[0],
      "with --momentum and --nesterov; form says where the rate enters momentum",
      read_method<SgdOptions>, is_method<SgdOptions>},
     {kOptimizerNames[1],
      "a rate for each layer, with --momentum (You et al. 2017); form as for sgd",
      read_method<LarsOptions>, is_method<LarsOptions>},
     {kOptimizerNames[2],
      "with moments of the gradient (Kingma and Ba 2015); amsgrad by Reddi et al. 2018, second "
      "moments of minibatches by Wang and Aitchison 2024",
      read_method<AdamOptions>, is_method<AdamOptions>},
     {kOptimizerNames[3], "adam with decoupled weight decay (Loshchilov and Hutter 2019)",
      read_method<AdamOptions, true>, is_method<AdamOptions, true>},
     {kOptimizerNames[4], "with --momentum (Tieleman and Hinton 2012)", read_method<RmspropOptions>,
      is_method<RmspropOptions>},
     {kOptimizerNames[5], "with sums of squares (Duchi et al. 2011)", read_method<AdagradOptions>,
      is_method<AdagradOptions>},
     {kOptimizerNames[6],
      "orthogonal updates of matrices (Jordan et al. 2024), adamw for all else and for the "
      "parameters that match adamw; scale by Liu et al. 2025 or by Jordan",
      read_method<MuonOptions>, is_method<MuonOptions>}}};

void require_factors(double momentum, double weight_decay) {
  require(momentum, "momentum", kBelowOne);
  require(weight_decay, "weight decay", kNotNegative);
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
  return std::ranges::find_if(kOptimizers, [&](const OptimizerRow& row) { return row.is(method); })
      ->name;
}

void require_valid(const OptimizerOptions& options) {
  require_factors(options.momentum, options.weight_decay);
  if (method_options<SgdOptions>(options.method).nesterov && options.momentum == 0) {
    throw Refused("nesterov", "there is no momentum", "a momentum above 0");
  }
  const auto check = [](auto /*key*/, auto name, double value, const RealRange& range) {
    require(value, name, range);
  };
  std::visit([&](auto method) { visit_numbers(method, check); }, options.method);
  const std::int64_t steps = method_options<MuonOptions>(options.method).steps;
  if (steps < 1 || steps > kMostMuonSteps) {
    throw_error("{} Newton-Schulz steps: accepted are 1 to {}", steps, kMostMuonSteps);
  }
}

void require_valid(const OptimizerOptions& options, const std::vector<GroupOptions>& groups) {
  require_valid(options);
  for (const GroupOptions& group : groups) {
    require_factors(group.momentum.value_or(options.momentum),
                    group.weight_decay.value_or(options.weight_decay));
    if (!(group.learning_rate_factor >= 0)) {
      throw_error("learning-rate factor {} of a group: accepted are values of at least 0",
                  group.learning_rate_factor);
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
