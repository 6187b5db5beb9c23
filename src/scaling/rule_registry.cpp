#include <algorithm>

#include <fmt/format.h>

#include <rubato/core/choice.hpp>
#include <rubato/core/error.hpp>
#include <rubato/scaling/adascale_rule.hpp>
#include <rubato/scaling/constant_rule.hpp>
#include <rubato/scaling/lambda_rule.hpp>
#include <rubato/scaling/lbsgd_rule.hpp>
#include <rubato/scaling/linear_momentum_rule.hpp>
#include <rubato/scaling/linear_rule.hpp>
#include <rubato/scaling/ramp_rule.hpp>
#include <rubato/scaling/root_rule.hpp>
#include <rubato/scaling/rule_registry.hpp>

namespace rubato {

namespace {

constexpr std::int64_t kMostRampSteps = 1'000'000'000;

constexpr std::array<Choice<Averaging>, 2> kAveragings{
    {{Averaging::debiased, "debiased"}, {Averaging::mean_first, "mean-first"}}};

template <class R>
std::unique_ptr<Rule> make_plain(Spec&) {
  return std::make_unique<R>();
}

std::unique_ptr<Rule> make_adascale(Spec& spec) {
  AdaScaleOptions options;
  const double smoothing = spec.real("smoothing", 0, kBelowOne);
  if (spec.has("smoothing")) options.smoothing = smoothing;
  options.averaging = parse_choice("averaging", spec.text("averaging", "debiased"), kAveragings);
  if (options.smoothing == 0.0) {
    spec.refuse("averaging", "does nothing with smoothing=0; accepted: a smoothing above 0");
  }
  options.rescale_variance = spec.flag("rescale-variance", false);
  return std::make_unique<AdaScaleRule>(options);
}

std::unique_ptr<Rule> make_lbsgd(Spec& spec) {
  LbsgdOptions options;
  options.warmup = parse_choice("warm-up", spec.text("warmup", "linear"), kLbsgdWarmups);
  options.warmup_epochs = spec.real("epochs", options.warmup_epochs, kNotNegative);
  options.begin_epoch = spec.real("begin-epoch", options.begin_epoch, kNotNegative);
  options.updates_per_epoch = spec.real("updates-per-epoch", 0, kPositive);
  if (options.warmup == LbsgdWarmup::lars) {
    for (const auto* key : {"epochs", "begin-epoch", "updates-per-epoch"}) {
      spec.refuse(key,
                  "does nothing with warmup=lars, which has factors of the layers instead; "
                  "accepted: with warmup=linear, power2 or sqrt");
    }
  } else if (options.warmup_epochs == 0) {
    for (const auto* key : {"warmup", "begin-epoch", "updates-per-epoch"}) {
      spec.refuse(key, "does nothing with epochs=0; accepted: with epochs above 0");
    }
  }
  return std::make_unique<LbsgdRule>(options);
}

}  // namespace

RuleRegistry::RuleRegistry()
    : makers_{{"constant", make_plain<ConstantRule>},
              {"linear", make_plain<LinearRule>},
              {"root", make_plain<RootRule>},
              {"linear-momentum", make_plain<LinearMomentumRule>},
              {"adascale", make_adascale},
              {"lbsgd", make_lbsgd}} {}

void RuleRegistry::add(std::string name, Maker maker) {
  for (const auto& [taken, other] : makers_) {
    if (taken == name) throw Error(fmt::format("there is a rule '{}' already", name));
  }
  makers_.emplace_back(std::move(name), std::move(maker));
}

void RuleRegistry::add(const std::string& name, Factor factor) {
  add(name, Maker([name, factor = std::move(factor)](Spec&) {
        return std::make_unique<LambdaRule>(name, factor);
      }));
}

std::vector<std::string_view> RuleRegistry::names() const {
  std::vector<std::string_view> names;
  names.reserve(makers_.size());
  for (const auto& [name, maker] : makers_) names.emplace_back(name);
  return names;
}

std::unique_ptr<Rule> RuleRegistry::make(std::string_view spec) const {
  Spec arguments(spec);
  const auto found = std::find_if(makers_.begin(), makers_.end(), [&](const auto& maker) {
    return maker.first == arguments.name();
  });
  if (found == makers_.end()) {
    throw Error(unknown_name_message("rule", arguments.name(), names()));
  }
  std::unique_ptr<Rule> rule = found->second ? found->second(arguments) : nullptr;
  if (rule == nullptr) {
    throw Error(fmt::format("nothing makes rule '{}'; accepted: a maker that gives a rule",
                            arguments.name()));
  }
  const std::int64_t ramp = arguments.whole("ramp", 0, 1, kMostRampSteps);
  if (!rule->follows_batch_size()) {
    arguments.refuse("ramp",
                     "does nothing where the rate does not change with the batch size; "
                     "accepted: with another rule");
  }
  arguments.finish();
  if (ramp > 0) rule = std::make_unique<RampRule>(std::move(rule), ramp);
  return rule;
}

std::unique_ptr<Rule> make_rule(std::string_view spec) {
  return RuleRegistry().make(spec);
}

std::vector<std::string_view> rule_names() {
  static const RuleRegistry builtin;
  return builtin.names();
}

}  // namespace rubato
