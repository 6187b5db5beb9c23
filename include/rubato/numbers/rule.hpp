#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>

namespace rubato {

/// Measurements of a step's gradients for one parameter group: the sums of squares on which all
/// estimates of gradient noise are based.
struct GradientNorms {
  /// The mean, over the minibatches of the step, of the squared norm of each one's gradient.
  double minibatch_square = 0;
  /// The squared norm of the mean of the gradients.
  double mean_square = 0;
};

/// The norms of one parameter tensor, for layer-wise rules.
struct ParameterNorms {
  double weight_square = 0;
  /// Squared norm of the step's mean gradient, without weight decay.
  double gradient_square = 0;
  double weight_decay = 0;
};

/// The unbiased estimates from the norms of one step (McCandlish et al. 2018, "An empirical model
/// of large-batch training", appendix A.1; Johnson et al. 2020, "AdaScale SGD", appendix B.3).
struct NoiseEstimate {
  /// Squared norm of the true gradient; may be negative.
  double signal = 0;
  /// Trace of the covariance of a minibatch's gradient; negative only by rounding.
  double variance = 0;

  /// The estimate from a step of at least 2 minibatches; one alone carries no information about the
  /// variance.
  [[nodiscard]] static constexpr NoiseEstimate of(const GradientNorms& norms, double minibatches) {
    const double variance =
        (norms.minibatch_square - norms.mean_square) * minibatches / (minibatches - 1);
    return {.signal = norms.mean_square - variance / minibatches, .variance = variance};
  }
};

/// The reduction of the minibatches' gradients before the update.
enum class GradientReduction {
  mean,  ///< their mean: the gradient of the mean loss of the batch
  sum,   ///< their sum
};

/// The place of the learning rate in momentum. The two forms are equivalent while the rate is
/// constant, but rules change it.
enum class MomentumForm {
  pytorch,  ///< v = m v + g, w = w - rate v: a new rate applies to all of the velocity
  mxnet,    ///< v = m v + rate g, w = w - v: to the new gradient only; also Caffe's
};

/// The needs of a rule. Measuring norms costs time.
struct RuleNeeds {
  /// RuleInput::groups.
  bool group_norms = false;
  /// RuleInput::metric_groups; needs group_norms, too.
  bool metric_norms = false;
  /// RuleInput::layers.
  bool parameter_norms = false;
  /// An optimizer with the betas and the epsilon of Adam, which the rule answers.
  bool adam = false;
};

/// The numbers of an optimizer that a rule may answer, as the options give them; empty where the
/// optimizer has no such number. The numbers of a parameter group of its own are not among them.
struct OptimizerNumbers {
  /// The momentum of SGD, LARS and RMSprop.
  std::optional<double> momentum{};
  /// The betas and the epsilon of Adam.
  std::optional<double> beta1{};
  std::optional<double> beta2{};
  std::optional<double> epsilon{};
  MomentumForm momentum_form = MomentumForm::pytorch;
  /// True if the optimizer remembers a velocity or a mean of gradients, and Adam's mean squares.
  bool has_mean = false;
  bool has_squares = false;
  /// True if these are mean squares of minibatches' gradients, which do not depend on the batch.
  bool of_minibatches = false;
  /// True if the optimizer divides gradients by what it remembers: a metric of its own
  /// (FlatOptimizer::fill_metric()).
  bool has_metric = false;
};

/// The part of a rule's answer that replaces numbers of the optimizer in one step, or changes what
/// it remembers before that step. Empty numbers stay as they are.
struct OptimizerAnswer {
  /// These are from 0 to below 1. A parameter group with a momentum of its own keeps that.
  std::optional<double> momentum{};
  std::optional<double> beta1{};
  std::optional<double> beta2{};
  /// At least 0.
  std::optional<double> epsilon{};
  /// Multiplies the velocity, or Adam's mean, at least 0; 0 forgets it, and the correction of its
  /// bias begins anew.
  std::optional<double> mean_factor{};
  /// Multiplies the variance in Adam's mean squares, at least 0: with m and v after the correction
  /// of their bias, v' = m^2 + (v - m^2) x factor where v is above m^2.
  std::optional<double> variance_factor{};
  /// Sets Adam's mean squares to 0; the correction of their bias begins anew.
  bool forget_squares = false;

  friend bool operator==(const OptimizerAnswer&, const OptimizerAnswer&) = default;
};

/// The properties of a step that a rule may use.
struct RuleInput {
  /// Samples in the global batch of the step, at least 1.
  std::int64_t batch_size = 1;
  /// Samples in a minibatch, at least 1.
  std::int64_t minibatch_size = 1;
  /// The batch size for which the base learning rate was tuned, at least 1.
  std::int64_t reference_batch_size = 1;
  /// The learning rate of a step of the reference batch size, after any schedule.
  double base_learning_rate = 0;
  /// Samples of an epoch, or 0 if unknown.
  std::int64_t epoch_size = 0;
  /// Norms of each parameter group, if the rule needs them.
  std::span<const GradientNorms> groups{};
  /// The same norms of gradients in the optimizer's metric, if the rule needs them; empty in first
  /// steps, when the optimizer has none yet.
  std::span<const GradientNorms> metric_groups{};
  /// True if this step and the one before it had one minibatch each; `groups` and
  /// `metric_groups` are then the norms of the two as if they were the minibatches of one step
  /// (AdaScaleEstimator::update_from_pair()).
  bool from_pair = false;
  /// Norms of each parameter tensor, if the rule needs them.
  std::span<const ParameterNorms> layers{};
  OptimizerNumbers optimizer{};
  /// The numbers of parameter groups and tensors: a rule returns as many factors, or none.
  std::size_t group_count = 1;
  std::size_t layer_count = 1;

  /// Scale S: the batch size relative to the reference batch size.
  [[nodiscard]] double scale() const {
    return static_cast<double>(batch_size) / static_cast<double>(reference_batch_size);
  }
  /// True if all minibatches have equally many samples. Otherwise the norms of groups carry no
  /// information about the noise.
  [[nodiscard]] bool has_whole_minibatches() const { return batch_size % minibatch_size == 0; }
  /// Minibatches in the step; the last may have fewer samples than minibatch_size.
  [[nodiscard]] std::int64_t minibatches() const {
    return (batch_size + minibatch_size - 1) / minibatch_size;
  }
};

/// The result of a rule: finite numbers of at least 0, which the trainer checks before the update.
/// The spans belong to the rule and are valid until its next step.
struct Rates {
  /// The rate relative to the mean gradient; it is reported and comparable between rules.
  double learning_rate = 0;
  /// The factor of the gradient as reduced; equal to the learning rate for a rule of mean gradients
  /// that treats all parameters alike.
  double update_rate = 0;
  /// The factor on the weight decay of this step.
  double weight_decay_factor = 1;
  /// The number of steps of the reference batch size that this step is worth: the advance of
  /// scale-invariant iterations.
  double gain = 1;
  /// Factors on the update rate, for each parameter group and each parameter tensor; empty if all
  /// are 1.
  std::span<const double> group_factors{};
  std::span<const double> layer_factors{};
  OptimizerAnswer optimizer{};
};

/// Computes the learning rate from the batch size; independent of tensors, cores and threads.
class Rule {
 public:
  Rule() = default;
  Rule(const Rule&) = delete;
  Rule& operator=(const Rule&) = delete;
  virtual ~Rule() = default;

  /// The name in options and messages.
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual GradientReduction reduction() const { return GradientReduction::mean; }
  [[nodiscard]] virtual RuleNeeds needs() const { return {}; }
  /// True if the rate changes with the batch size.
  [[nodiscard]] virtual bool follows_batch_size() const { return true; }
  /// The form of momentum that the rule was published with, if it matters.
  [[nodiscard]] virtual std::optional<MomentumForm> momentum_form() const { return std::nullopt; }
  /// The rates of the next step; called once for each step, in order.
  [[nodiscard]] virtual Rates rates(const RuleInput& input) = 0;

  /// The state that rates() depends on besides its input; none by default.
  virtual void visit_state(NumberVisitor& numbers) { static_cast<void>(numbers); }

  /// The rates of a rule that multiplies the base rate.
  [[nodiscard]] static Rates scaled(const RuleInput& input, double factor) {
    const double rate = input.base_learning_rate * factor;
    return {.learning_rate = rate, .update_rate = rate, .gain = factor};
  }
};

/// A rule that is a function of the step: lr(B) = lr_ref x factor(step), or the whole answer.
///
///     rubato::FunctionRule log2("log2", [](const rubato::RuleInput& step) {
///       return 1 + std::log2(step.scale());
///     });
class FunctionRule final : public Rule {
 public:
  using Factor = std::function<double(const RuleInput& input)>;
  using Answer = std::function<Rates(const RuleInput& input)>;

  FunctionRule(std::string name, Factor factor)
      : name_(std::move(name)), answer_([factor = std::move(factor)](const RuleInput& input) {
          return scaled(input, factor(input));
        }) {}
  FunctionRule(std::string name, Answer answer)
      : name_(std::move(name)), answer_(std::move(answer)) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] Rates rates(const RuleInput& input) override { return answer_(input); }

 private:
  std::string name_;
  Answer answer_;
};

/// A rule by its text (base/spec.hpp), such as "linear" or "adascale:smoothing=0.9".
using RuleChoice = Chosen<Rule>;
/// @cond Doxygen does not know specialisations of members.
template <>
RuleChoice RuleChoice::built_in(std::string_view text);
/// @endcond

/// The rules that can be asked for by name: the built-in ones (constant, linear, root,
/// root-adam, linear-momentum and adascale in rules.hpp, lbsgd in lbsgd_rule.hpp), and a user's
/// own.
///
/// strategies() lists their arguments. All rules whose rate depends on the batch size take ramp=N,
/// too: RampRule over N steps. Arguments that have no effect with the others (epochs=3 with
/// warmup=lars) are refused.
class RuleRegistry {
 public:
  /// Reads all arguments that the rule takes, given or not: reading them describes them.
  using Maker = std::function<std::unique_ptr<Rule>(Spec& arguments)>;
  /// The factor on the base learning rate, and the whole answer.
  using Factor = FunctionRule::Factor;
  using Answer = FunctionRule::Answer;

  /// Creates a registry of the built-in rules.
  RuleRegistry();

  /// Adds a user's rule; `help` describes it. Throws Error if the name is taken, empty or contains
  /// one of ":,+=" or a blank, and if the maker or function is empty.
  void add(std::string name, Maker maker, std::string help = {});
  /// Adds a rule that is a function (FunctionRule).
  void add(const std::string& name, Factor factor, std::string help = {});
  void add(const std::string& name, Answer answer, std::string help = {});

  [[nodiscard]] std::vector<std::string_view> names() const;
  /// The rules with their arguments. Throws what a maker throws without arguments.
  [[nodiscard]] std::vector<Strategy> strategies() const;

  /// The rule that `text` asks for. Throws Error for an unknown name, with the nearest, and for
  /// arguments that the rule does not take.
  [[nodiscard]] RuleChoice choose(std::string_view text) const;

 private:
  struct Row {
    std::string name;
    std::string help;
    Maker make;
  };

  // Reads the rule's arguments without calling finish().
  static std::unique_ptr<Rule> read(const Row& row, Spec& arguments);

  std::vector<Row> rows_;
};

/// The same functions for the built-in rules alone, which RuleChoice makes.
[[nodiscard]] std::vector<std::string_view> rule_names();
[[nodiscard]] std::vector<Strategy> rules();

}  // namespace rubato
