// The optimizer, Lookahead around it, and the adjustments of what a rule answers it.
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "loop/optim/make_optimizer.hpp"
#include "step_choices.hpp"
#include "step_part.hpp"

namespace rubato {

namespace {

std::string text_of(const OptimizerOptions& o) {
  // Other methods' options are written, too, so that old states stay valid.
  const auto sgd = method_options<SgdOptions>(o.method);
  const auto lars = method_options<LarsOptions>(o.method);
  const auto adam = method_options<AdamOptions>(o.method);
  const auto rmsprop = method_options<RmspropOptions>(o.method);
  const auto adagrad = method_options<AdagradOptions>(o.method);
  const double epsilon = std::holds_alternative<AdagradOptions>(o.method)   ? adagrad.epsilon
                         : std::holds_alternative<RmspropOptions>(o.method) ? rmsprop.epsilon
                                                                            : adam.epsilon;
  // If the user chose no form, the optimizer's own holds.
  const auto form = sgd.momentum_form ? sgd.momentum_form : lars.momentum_form;
  std::string text = fmt::format(
      "{} momentum {} weight_decay {} nesterov {} trust {} betas {} {} amsgrad {} alpha {} "
      "centered {} lr_decay {} initial {} epsilon {}{}{}",
      optimizer_name(o.method), o.momentum, o.weight_decay, sgd.nesterov, lars.trust, adam.beta1,
      adam.beta2, adam.amsgrad, rmsprop.alpha, rmsprop.centered, adagrad.lr_decay,
      adagrad.initial_accumulator, epsilon,
      form ? fmt::format(" form {}", choice_name(kMomentumForms, *form)) : "",
      adam.second_moment == SecondMoment::mean
          ? ""
          : fmt::format(" second_moment {}", choice_name(kSecondMoments, adam.second_moment)));
  const auto* const muon = std::get_if<MuonOptions>(&o.method);
  if (muon == nullptr) return text;
  return fmt::format(
      "{} muon_momentum {} muon_nesterov {} steps {} scale {} beta1 {} beta2 {} muon_epsilon {} "
      "elements {}",
      text, muon->momentum, muon->nesterov, muon->steps, choice_name(kMuonScales, muon->scale),
      muon->beta1, muon->beta2, muon->epsilon, muon->adamw.empty() ? "of-vectors" : muon->adamw);
}

std::string text_of(const LookaheadOptions& o) {
  // The states of older versions do not mention the weights.
  return fmt::format("k {} alpha {} start {}{}", o.k, o.alpha,
                     choice_name(kLookaheadStarts, o.start),
                     o.weights == LookaheadWeights::slow ? "" : " weights fast");
}

std::string text_of(const RuleAdjustments& adjustments) {
  const MemoriesInSamples& in_samples = adjustments.memories;
  const BatchChange& change = adjustments.on_batch_change;
  return fmt::format("momentum {} beta1 {} beta2 {} lookahead {} decay {} mean {} squares {}",
                     in_samples.momentum, in_samples.beta1, in_samples.beta2, in_samples.lookahead,
                     choice_name(kDecayRules, adjustments.decay),
                     choice_name(kTreatments, change.of_mean()),
                     choice_name(kTreatments, change.of_squares()));
}

}  // namespace

StepPart optimizer_part() {
  return {.prefix = "optimizer.",
          .bound = [](const TrainOptions& options) -> std::vector<BoundValue> {
            constexpr const char* kOwn = "the user's own";
            const bool own = static_cast<bool>(options.own_optimizer);
            return {{"optimizer", own ? kOwn : text_of(options.optimizer), OnFork::free},
                    {.name = "optimizer_memory",
                     .value = own ? kOwn : memory_kind(options.optimizer),
                     .on_fork = OnFork::anew,
                     .memory = "optimizer",
                     .before = "optimizer"}};
          },
          .needs = [](const TrainOptions& options) -> PartNeeds {
            if (options.own_optimizer) return {.remembered = options.own_optimizer.remembered};
            return {
                .remembered = remembered_values(options.optimizer, group_options(options.groups)),
                .scratch = working_values(options.optimizer)};
          }};
}

StepPart lookahead_part() {
  return {.prefix = "lookahead",
          .bound = [](const TrainOptions& options) -> std::vector<BoundValue> {
            return {{"lookahead", options.lookahead ? text_of(*options.lookahead) : "none",
                     OnFork::free}};
          },
          .needs = [](const TrainOptions& options) -> PartNeeds {
            if (!options.lookahead) return {};
            return {.remembered = Lookahead<float>::kRemembered,
                    .tests_others = options.lookahead->weights == LookaheadWeights::slow};
          }};
}

StepPart adjustments_part() {
  return {.bound = [](const TrainOptions& options) -> std::vector<BoundValue> {
    const bool none = options.adjustments == RuleAdjustments();
    return {{"adjustments", none ? "" : text_of(options.adjustments), OnFork::free}};
  }};
}

}  // namespace rubato
