#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <rubato/base/parse.hpp>
#include <rubato/numbers/rule.hpp>

namespace rubato {

/// The way in which the rate of large-batch SGD reaches S times the base rate.
enum class LbsgdWarmup { linear, power2, sqrt, lars };

inline constexpr std::array<Choice<LbsgdWarmup>, 4> kLbsgdWarmups{{{LbsgdWarmup::linear, "linear"},
                                                                   {LbsgdWarmup::power2, "power2"},
                                                                   {LbsgdWarmup::sqrt, "sqrt"},
                                                                   {LbsgdWarmup::lars, "lars"}}};

struct LbsgdOptions {
  LbsgdWarmup warmup = LbsgdWarmup::linear;
  /// Length of the warm-up, at least 0.
  double warmup_epochs = 5;
  /// The epoch in which training is assumed to begin, at least 0.
  double begin_epoch = 0;
  /// Reference batches in an epoch; 0 stands for the epoch's samples / the reference batch size.
  double updates_per_epoch = 0;
};

/// The factor on the rate after `updates` of `warmup_updates` reference batches, at scale S:
///
///     1 + (S - 1) f(updates / warmup_updates),   f(x) = x, x^2 or sqrt(x);   S after the warm-up
///
/// LbsgdWarmup::lars is not accepted.
[[nodiscard]] double lbsgd_factor(LbsgdWarmup warmup, double scale, double updates,
                                  double warmup_updates);

/// sqrt(|w|^2 / (|g|^2 + wd |w|^2)), from 0.01 to 100: the factor on the rate of one layer.
[[nodiscard]] double lbsgd_layer_factor(const ParameterNorms& layer);

/// MXNet's large-batch SGD (pull request 8918). A step is a macro-batch of S reference batches,
/// whose gradients are averaged, with a rate that warms up from lr_ref to S lr_ref; with `lars`,
/// the rate is lr_ref times a factor for each layer (You et al. 2017, without trust coefficient).
///
/// S belongs to the step and is not a constant. The warm-up counts reference batches, including
/// this step's, so it has the same length in samples under every trace. Momentum is MXNet's, too:
/// the rate of the step, including warm-up and layer factor, multiplies the new gradient only.
class LbsgdRule final : public Rule {
 public:
  explicit LbsgdRule(const LbsgdOptions& options = {});

  [[nodiscard]] std::string_view name() const override { return "lbsgd"; }
  [[nodiscard]] RuleNeeds needs() const override {
    return {.parameter_norms = options_.warmup == LbsgdWarmup::lars};
  }
  [[nodiscard]] bool follows_batch_size() const override {
    return options_.warmup != LbsgdWarmup::lars;
  }
  [[nodiscard]] std::optional<MomentumForm> momentum_form() const override {
    return MomentumForm::mxnet;
  }
  /// Throws Error if the length of the warm-up is unknown: neither updates_per_epoch in the options
  /// nor epoch_size in the input.
  [[nodiscard]] Rates rates(const RuleInput& input) override;

  void visit_state(NumberVisitor& numbers) override { numbers.number(updates_); }

 private:
  LbsgdOptions options_;
  // Reference batches so far.
  double updates_ = 0;
  std::vector<double> layer_factors_;
};

}  // namespace rubato
