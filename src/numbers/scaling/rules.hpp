#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <rubato/numbers/adascale_estimator.hpp>
#include <rubato/numbers/rule.hpp>

namespace rubato {

/// lr(B) = lr_ref for every batch size. This null rule shows the shape of all others, and is the
/// baseline for the benefit of scaling.
class ConstantRule final : public Rule {
 public:
  [[nodiscard]] std::string_view name() const override { return "constant"; }
  [[nodiscard]] bool follows_batch_size() const override { return false; }
  [[nodiscard]] Rates rates(const RuleInput& input) override;
};

/// lr(B) = lr_ref x B / B_ref.
///
/// Goyal et al. 2017, "Accurate, large minibatch SGD: training ImageNet in 1 hour", section 2.1: k
/// steps of batch B_ref at rate lr have about the same effect as one step of batch k B_ref at rate
/// k lr, as long as the gradient changes little over the k steps.
class LinearRule final : public Rule {
 public:
  [[nodiscard]] std::string_view name() const override { return "linear"; }
  [[nodiscard]] Rates rates(const RuleInput& input) override;
};

/// lr(B) = lr_ref x sqrt(B / B_ref).
///
/// Krizhevsky 2014, "One weird trick for parallelizing convolutional neural networks", section 5:
/// the variance of the update is the same for every batch size.
class RootRule final : public Rule {
 public:
  [[nodiscard]] std::string_view name() const override { return "root"; }
  [[nodiscard]] Rates rates(const RuleInput& input) override;
};

/// The betas of Adam at scale S.
enum class ScaledBetas {
  /// beta^S: a half-life has the same number of samples at every batch size. Always in (0, 1).
  powers,
  /// 1 - S (1 - beta), its first-order expansion, which the paper gives; 0 where it is negative.
  published,
};

inline constexpr std::array<Choice<ScaledBetas>, 2> kScaledBetas{
    {{ScaledBetas::powers, "powers"}, {ScaledBetas::published, "published"}}};

/// The root rule with Adam's other numbers:
///
///     lr(B) = lr_ref x sqrt(S),    beta_i(B) = beta_i^S,    epsilon(B) = epsilon / sqrt(S)
///
/// Malladi et al. 2022, "On the SDEs and scaling rules for adaptive gradient algorithms",
/// definition 5.1: Adam follows the same stochastic differential equation at every batch size, as
/// long as noise dominates the gradient.
class RootAdamRule final : public Rule {
 public:
  explicit RootAdamRule(ScaledBetas betas = ScaledBetas::powers) : betas_(betas) {}

  [[nodiscard]] std::string_view name() const override { return "root-adam"; }
  [[nodiscard]] RuleNeeds needs() const override { return {.adam = true}; }
  [[nodiscard]] Rates rates(const RuleInput& input) override;

 private:
  ScaledBetas betas_;
};

/// The linear rule with the batch size in the gradient instead of in the rate: gradients are summed
/// over the minibatches of a step, and the rate is that of one minibatch,
///
///     update rate = lr_ref x minibatch size / B_ref,    weight decay = wd x minibatches,
///
/// so that without momentum a step equals the linear rule's, and with momentum the buffer holds
/// contributions in proportion to their samples: no correction is needed when the batch size
/// changes (compare Goyal et al. 2017, section 3, "momentum correction"). The reported learning
/// rate is the linear rule's.
class LinearMomentumRule final : public Rule {
 public:
  [[nodiscard]] std::string_view name() const override { return "linear-momentum"; }
  [[nodiscard]] GradientReduction reduction() const override { return GradientReduction::sum; }
  [[nodiscard]] Rates rates(const RuleInput& input) override;
};

/// The norms from which AdaScale measures the gain.
enum class GainMetric {
  euclidean,
  /// Norms of gradients multiplied by the diagonal of the optimizer's metric
  /// (FlatOptimizer::fill_metric()): the noise of Adam's updates instead of that of its gradients.
  /// Nothing is measured before the optimizer has one.
  optimizer,
};

inline constexpr std::array<Choice<GainMetric>, 2> kGainMetrics{
    {{GainMetric::euclidean, "euclidean"}, {GainMetric::optimizer, "optimizer"}}};

/// lr(B) = lr_ref x gain(S)^power, measured for each parameter group separately
/// (AdaScaleEstimator); a step counts for gain(S) steps at any power. With power 1 it equals the
/// linear rule where gradients are all noise and the constant rule where they are all signal; in
/// between it depends on the gradients of this step and those before it. The reported learning rate
/// and gain are those of all groups together.
///
/// With `linear_after`, at least 0, the gain goes over to the linear rule's in the first epochs:
///
///     gain(S)^(1 - x) S^x,    x = min(1, epochs trained after the step / linear_after)
///
/// because oscillation along steep directions counts as signal and keeps the measured gain low long
/// after larger steps have become safe (docs/adr/0088). 0 stands for never.
class AdaScaleRule final : public Rule {
 public:
  explicit AdaScaleRule(const AdaScaleOptions& options = {},
                        GainMetric metric = GainMetric::euclidean, double power = 1,
                        double linear_after = 0)
      : estimator_(options), metric_(metric), power_(power), linear_after_(linear_after) {}

  [[nodiscard]] std::string_view name() const override { return "adascale"; }
  [[nodiscard]] RuleNeeds needs() const override {
    return {.group_norms = true, .metric_norms = metric_ == GainMetric::optimizer};
  }
  /// Requires `input.groups`. Throws Error if the gain is to become linear and the samples of an
  /// epoch are unknown.
  [[nodiscard]] Rates rates(const RuleInput& input) override;

  void visit_state(NumberVisitor& numbers) override;

  [[nodiscard]] const AdaScaleEstimator& estimator() const { return estimator_; }

 private:
  void measure(const RuleInput& input, std::span<const GradientNorms> groups);
  // How far the gain has become linear after a step, from 0 to 1.
  [[nodiscard]] double share_of_linear(const RuleInput& input);
  // The factor on the rate.
  [[nodiscard]] double factor(double gain) const;

  AdaScaleEstimator estimator_;
  GainMetric metric_;
  double power_;
  double linear_after_;
  // Samples so far; counted only if the gain becomes linear.
  std::int64_t samples_ = 0;
  // The scale of the step before; 0 before the first.
  double scale_ = 0;
  std::vector<double> factors_;
};

/// Wraps another rule; when the batch size changes, the rate moves to its new value over several
/// steps, because with momentum a sudden change of the rate is a disturbance (Lin et al. 2019,
/// "Dynamic mini-batch SGD for elastic distributed training", section 4). In step k of T after a
/// change
///
///     factor = before + (k / T) (rule's - before),     k = 1 .. T
///
/// where `factor` is the rate relative to the base rate, and `before` its value when the batch size
/// changed. A change during a ramp starts a new one from the current factor. Momentum, betas and
/// the like are those of the rule at once.
class RampRule final : public Rule {
 public:
  /// Throws Error if `steps` is below 1.
  RampRule(std::unique_ptr<Rule> rule, std::int64_t steps);

  [[nodiscard]] std::string_view name() const override { return rule_->name(); }
  [[nodiscard]] GradientReduction reduction() const override { return rule_->reduction(); }
  [[nodiscard]] RuleNeeds needs() const override { return rule_->needs(); }
  [[nodiscard]] bool follows_batch_size() const override { return rule_->follows_batch_size(); }
  [[nodiscard]] std::optional<MomentumForm> momentum_form() const override {
    return rule_->momentum_form();
  }
  [[nodiscard]] Rates rates(const RuleInput& input) override;

  void visit_state(NumberVisitor& numbers) override;

 private:
  std::unique_ptr<Rule> rule_;
  std::int64_t steps_;
  // Batch size of the last step; 0 before the first.
  std::int64_t batch_size_ = 0;
  // Steps taken since the batch size changed; equal to steps_ outside a ramp.
  std::int64_t taken_;
  double before_ = 0;
  double factor_ = 0;
};

}  // namespace rubato
