// The built-in rules are the rows of kRules; a registry copies them and appends the user's, and
// after that treats both alike. read() makes the rule of a row and then takes `ramp`, the argument
// that all rules have whose rate follows the batch size, by wrapping the rule in a RampRule. Makers
// read every argument that the rule has, because reading describes it for help. A RuleChoice keeps
// the row and the arguments by value, so it can make rules after the registry is gone.

#include <array>
#include <utility>

#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/numbers/rule.hpp>

#include "base/core/throw_error.hpp"
#include "lbsgd_rule.hpp"
#include "rules.hpp"

namespace rubato {

namespace {

constexpr std::int64_t kMostRampSteps = 1'000'000'000;

constexpr std::array<Choice<Averaging>, 2> kAveragings{
    {{Averaging::debiased, "debiased"}, {Averaging::mean_first, "mean-first"}}};

template <class R>
std::unique_ptr<Rule> make_plain(Spec& /*arguments*/) {
  return std::make_unique<R>();
}

std::unique_ptr<Rule> make_adascale(Spec& spec) {
  AdaScaleOptions options;
  options.smoothing = spec.real("smoothing", Unset{"max(1 - N/1000, 0)"}, kBelowOne);
  options.averaging = spec.choice("averaging", options.averaging, kAveragings);
  if (options.smoothing == 0.0) {
    spec.refuse("averaging", "does nothing with smoothing=0; accepted: a smoothing above 0");
  }
  options.rescale_variance = spec.flag("rescale-variance", options.rescale_variance);
  const GainMetric metric = spec.choice("metric", GainMetric::euclidean, kGainMetrics);
  const double power = spec.real("power", 1.0, kPositive);
  const double linear_after = spec.real("linear-after", Unset{"never"}, kPositive).value_or(0);
  return std::make_unique<AdaScaleRule>(options, metric, power, linear_after);
}

std::unique_ptr<Rule> make_lbsgd(Spec& spec) {
  LbsgdOptions options;
  options.warmup = spec.choice("warmup", options.warmup, kLbsgdWarmups);
  options.warmup_epochs = spec.real("epochs", options.warmup_epochs, kNotNegative);
  options.begin_epoch = spec.real("begin-epoch", options.begin_epoch, kNotNegative);
  options.updates_per_epoch =
      spec.real("updates-per-epoch", Unset{"epoch / --ref-batch"}, kPositive).value_or(0);
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

std::unique_ptr<Rule> make_root_adam(Spec& spec) {
  return std::make_unique<RootAdamRule>(spec.choice("betas", ScaledBetas::powers, kScaledBetas));
}

struct BuiltinRule {
  std::string_view name;
  std::string_view help;
  std::unique_ptr<Rule> (*make)(Spec& arguments);
};

constexpr std::array<BuiltinRule, 7> kRules{
    {{"constant", "lr, whatever the batch size", make_plain<ConstantRule>},
     {"linear", "S lr (Goyal et al. 2017)", make_plain<LinearRule>},
     {"root", "sqrt(S) lr (Krizhevsky 2014)", make_plain<RootRule>},
     {"root-adam",
      "sqrt(S) lr with beta1^S, beta2^S and eps / sqrt(S), for adam and adamw (Malladi et al. "
      "2022); betas=published has 1 - S (1 - beta) instead, and 0 where that is negative",
      make_root_adam},
     {"linear-momentum",
      "S lr by a sum of gradients instead of their mean, so that momentum needs no correction "
      "when the batch changes (Lin et al. 2019)",
      make_plain<LinearMomentumRule>},
     {"adascale",
      "gain(S) lr, 1 <= gain <= S, as the noise of the gradients says (Johnson et al. 2020); N is "
      "the number of minibatches of a step. metric=optimizer measures it in gradients as adam and "
      "adamw divide them; power=0.5 takes the root of the gain for the rate; with linear-after=E "
      "the "
      "gain becomes S within E epochs",
      make_adascale},
     {"lbsgd",
      "from lr to S lr by a warm-up over reference batches, or lr times a factor of each layer's "
      "own (warmup=lars): MXNet's large-batch SGD",
      make_lbsgd}}};

}  // namespace

RuleRegistry::RuleRegistry() {
  rows_.reserve(kRules.size());
  for (const BuiltinRule& rule : kRules) {
    rows_.push_back(
        {.name = std::string(rule.name), .help = std::string(rule.help), .make = rule.make});
  }
}

void RuleRegistry::add(std::string name, Maker maker, std::string help) {
  require_addable("rule", name, static_cast<bool>(maker));
  for (const Row& row : rows_) {
    if (row.name == name) throw_error("there is a rule '{}' already", name);
  }
  rows_.push_back({.name = std::move(name), .help = std::move(help), .make = std::move(maker)});
}

void RuleRegistry::add(const std::string& name, Factor factor, std::string help) {
  Maker maker;
  // An empty function becomes an empty maker, which is refused.
  if (factor) {
    maker = [name, factor = std::move(factor)](Spec& /*arguments*/) {
      return std::make_unique<FunctionRule>(name, factor);
    };
  }
  add(name, std::move(maker), std::move(help));
}

void RuleRegistry::add(const std::string& name, Answer answer, std::string help) {
  Maker maker;
  // An empty function becomes an empty maker, which is refused.
  if (answer) {
    maker = [name, answer = std::move(answer)](Spec& /*arguments*/) {
      return std::make_unique<FunctionRule>(name, answer);
    };
  }
  add(name, std::move(maker), std::move(help));
}

std::vector<std::string_view> RuleRegistry::names() const {
  return row_names(rows_);
}

std::vector<Strategy> RuleRegistry::strategies() const {
  return strategies_of(rows_, read);
}

std::unique_ptr<Rule> RuleRegistry::read(const Row& row, Spec& arguments) {
  std::unique_ptr<Rule> rule;
  try {
    if (row.make) rule = row.make(arguments);
  } catch (...) {
    rethrow_of_maker("rule", row.name);
  }
  if (rule == nullptr) {
    throw_error("nothing makes rule '{}'; accepted: a maker that gives a rule", arguments.name());
  }
  if (!rule->follows_batch_size()) {
    arguments.refuse("ramp",
                     "does nothing where the rate does not change with the batch size; "
                     "accepted: with another rule");
    return rule;
  }
  const auto ramp = arguments.whole("ramp", Unset{"at once"}, 1, kMostRampSteps);
  if (ramp) rule = std::make_unique<RampRule>(std::move(rule), *ramp);
  return rule;
}

RuleChoice RuleRegistry::choose(std::string_view text) const {
  const Spec spec(text);
  return {text, {spec.name()}, [row = find_row("rule", spec.name(), rows_), spec] {
            Spec arguments = spec;
            std::unique_ptr<Rule> rule = read(row, arguments);
            arguments.finish();
            return rule;
          }};
}

template <>
RuleChoice RuleChoice::built_in(std::string_view text) {
  return RuleRegistry().choose(text);
}

std::vector<std::string_view> rule_names() {
  return row_names(kRules);
}

std::vector<Strategy> rules() {
  return RuleRegistry().strategies();
}

}  // namespace rubato
