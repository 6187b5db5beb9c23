#pragma once

#include <array>
#include <string_view>

#include <rubato/loop/optimizer.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/numbers/adjustments.hpp>

namespace rubato::test {

/// A rule for an optimizer, with what becomes of its memory when batches change.
struct RuleOptions {
  const char* rule = "linear";
  const char* optimizer = "adamw";
  /// Half-lives in samples, and the treatments of a change, as on the command line.
  const char* memory = "";
  DecayRule decay = DecayRule::fixed;
  const char* on_batch_change = "keep";

  void set(TrainOptions& options) const {
    options.rule = rule;
    const bool has_momentum = std::string_view(optimizer).starts_with("sgd");
    options.optimizer =
        parse_optimizer(optimizer, {.momentum = has_momentum ? 0.9 : 0.0, .weight_decay = 0.01});
    options.adjustments = {.memories = parse_memories(memory),
                           .decay = decay,
                           .on_batch_change = parse_batch_change(on_batch_change)};
    if (options.adjustments.memories.lookahead) options.lookahead = LookaheadOptions{.k = 2};
  }
};

/// Each of the options by which a rule answers more than a rate, for trainings that must have the
/// same bits whoever computes them.
inline constexpr std::array kRuleOptions{
    RuleOptions{.rule = "root-adam"},
    RuleOptions{.rule = "root-adam:betas=published", .optimizer = "adam:amsgrad=true"},
    RuleOptions{.optimizer = "sgd", .memory = "momentum=samples"},
    RuleOptions{.rule = "root", .memory = "beta1=samples"},
    RuleOptions{.rule = "root", .memory = "beta2=samples", .decay = DecayRule::timescale},
    RuleOptions{.optimizer = "sgd", .memory = "lookahead=samples"},
    RuleOptions{.optimizer = "sgd", .decay = DecayRule::timescale},
    RuleOptions{.optimizer = "sgd", .on_batch_change = "rescale"},
    RuleOptions{.optimizer = "sgd:form=mxnet", .on_batch_change = "rescale"},
    RuleOptions{.optimizer = "sgd", .on_batch_change = "reset"},
    RuleOptions{.rule = "root", .on_batch_change = "rescale"},
    RuleOptions{.rule = "root", .on_batch_change = "m=rescale"},
    RuleOptions{.rule = "root", .optimizer = "adam:amsgrad=true", .on_batch_change = "v=rescale"},
    RuleOptions{.rule = "root", .on_batch_change = "reset"},
    RuleOptions{.rule = "root", .on_batch_change = "m=reset,v=keep"},
    RuleOptions{.rule = "root", .on_batch_change = "v=reset"},
    RuleOptions{.rule = "root", .optimizer = "muon", .memory = "momentum=samples"},
    RuleOptions{.rule = "root", .optimizer = "muon", .on_batch_change = "rescale"},
    RuleOptions{.rule = "adascale:metric=optimizer"},
    RuleOptions{.rule = "adascale:metric=optimizer", .optimizer = "adam:second-moment=minibatch"},
    RuleOptions{.rule = "adascale:metric=optimizer,power=0.5,smoothing=0.9",
                .optimizer = "adam:amsgrad=true",
                .memory = "beta2=samples"}};

}  // namespace rubato::test
