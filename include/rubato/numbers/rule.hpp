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

/// What a step's gradients say of one parameter group: the sums of squares that all estimates of
/// gradient noise begin with.
struct GradientNorms {
  /// The mean, over the minibatches of the step, of the squared norm of each one's gradient.
  double minibatch_square = 0;
  /// The squared norm of their mean.
  double mean_square = 0;
};

/// What layer-wise rules see of one parameter tensor.
struct ParameterNorms {
  double weight_square = 0;
  /// Of the step's mean gradient, without weight decay.
  double gradient_square = 0;
  double weight_decay = 0;
};

/// The unbiased estimates that one step's norms give (McCandlish et al. 2018, "An empirical model
/// of large-batch training", appendix A.1; Johnson et al. 2020, "AdaScale SGD", appendix B.3).
struct NoiseEstimate {
  /// Squared norm of the true gradient. May be below 0.
  double signal = 0;
  /// Trace of the covariance of a minibatch's gradient. May be below 0 by rounding only.
  double variance = 0;

  /// From a step of `minibatches` minibatches, at least 2: of one alone nothing can be said of the
  /// variance.
  [[nodiscard]] static constexpr NoiseEstimate of(const GradientNorms& norms, double minibatches) {
    const double variance =
        (norms.minibatch_square - norms.mean_square) * minibatches / (minibatches - 1);
    return {.signal = norms.mean_square - variance / minibatches, .variance = variance};
  }
};

/// What the gradients of a step's minibatches are reduced to before the update.
enum class GradientReduction {
  mean,  ///< their mean: the gradient of the mean loss of the batch
  sum,   ///< their sum
};

/// Where the learning rate enters momentum. The two forms are one as long as the rate does not
/// change, which is what rules make it do.
enum class MomentumForm {
  pytorch,  ///< v = m v + g, w = w - rate v: a new rate applies to all of the velocity
  mxnet,    ///< v = m v + rate g, w = w - v: to the new gradient only; also Caffe's
};

/// What a rule wants to see of the gradients; measuring it costs time.
struct RuleNeeds {
  /// RuleInput::groups.
  bool group_norms = false;
  /// RuleInput::layers.
  bool parameter_norms = false;
};

/// What a rule sees of a step.
struct RuleInput {
  /// Samples in the global batch of the step, at least 1.
  std::int64_t batch_size = 1;
  /// Samples in a minibatch, at least 1.
  std::int64_t minibatch_size = 1;
  /// The batch size for which the base learning rate was tuned, at least 1.
  std::int64_t reference_batch_size = 1;
  /// The learning rate of a step of the reference batch size, after any schedule.
  double base_learning_rate = 0;
  /// Samples of an epoch, or 0 where nobody says.
  std::int64_t epoch_size = 0;
  /// Of each parameter group, where the rule needs them.
  std::span<const GradientNorms> groups{};
  /// The step and the one before it had one minibatch each, and `groups` are the norms of the two
  /// as if they were the minibatches of one step (AdaScaleEstimator::update_from_pair()).
  bool from_pair = false;
  /// Of each parameter tensor, where the rule needs them.
  std::span<const ParameterNorms> layers{};
  /// How many parameter groups and tensors there are: so many factors a rule answers with, or none.
  std::size_t group_count = 1;
  std::size_t layer_count = 1;

  /// Scale S: the batch size relative to the reference batch size.
  [[nodiscard]] double scale() const {
    return static_cast<double>(batch_size) / static_cast<double>(reference_batch_size);
  }
  /// Whether all minibatches have as many samples. Of others the groups' norms say nothing of the
  /// noise.
  [[nodiscard]] bool has_whole_minibatches() const { return batch_size % minibatch_size == 0; }
  /// Minibatches in the step, of which the last may have fewer samples than minibatch_size.
  [[nodiscard]] std::int64_t minibatches() const {
    return (batch_size + minibatch_size - 1) / minibatch_size;
  }
};

/// What a rule answers: finite numbers of at least 0, which the trainer checks before the update.
/// The spans are the rule's, and good until its next step.
struct Rates {
  /// The rate relative to the mean gradient: what is reported, comparable between rules.
  double learning_rate = 0;
  /// The rate by which the optimizer multiplies the gradient as reduced; the learning rate itself
  /// for a rule of mean gradients that treats all parameters alike.
  double update_rate = 0;
  /// The factor on the weight decay of this step.
  double weight_decay_factor = 1;
  /// How many steps of the reference batch size the step counts for: the advance of
  /// scale-invariant iterations.
  double gain = 1;
  /// Factors on the update rate, for each parameter group and each parameter tensor; empty where
  /// all are 1.
  std::span<const double> group_factors{};
  std::span<const double> layer_factors{};
};

/// How the learning rate follows the batch size. Knows nothing of tensors, cores or threads.
class Rule {
 public:
  Rule() = default;
  Rule(const Rule&) = delete;
  Rule& operator=(const Rule&) = delete;
  virtual ~Rule() = default;

  /// The name by which users know it.
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual GradientReduction reduction() const { return GradientReduction::mean; }
  [[nodiscard]] virtual RuleNeeds needs() const { return {}; }
  /// Whether the rate changes when the batch size does.
  [[nodiscard]] virtual bool follows_batch_size() const { return true; }
  /// The form of momentum that the rule was published with, where it matters to it.
  [[nodiscard]] virtual std::optional<MomentumForm> momentum_form() const { return std::nullopt; }
  /// The rates of the next step. Called once for each step, in their order.
  [[nodiscard]] virtual Rates rates(const RuleInput& input) = 0;

  /// What it has learned so far: all that rates() goes by besides its input. By default nothing.
  virtual void visit_state(NumberVisitor& numbers) { static_cast<void>(numbers); }

 protected:
  /// The rates of a rule that multiplies the base rate, and nothing else.
  [[nodiscard]] static Rates scaled(const RuleInput& input, double factor) {
    const double rate = input.base_learning_rate * factor;
    return {.learning_rate = rate, .update_rate = rate, .gain = factor};
  }
};

/// lr(B) = lr_ref x factor(step): a rule of the user's own, without a class.
///
///     rubato::FunctionRule log2("log2", [](const rubato::RuleInput& step) {
///       return 1 + std::log2(step.scale());
///     });
class FunctionRule final : public Rule {
 public:
  FunctionRule(std::string name, std::function<double(const RuleInput& input)> factor)
      : name_(std::move(name)), factor_(std::move(factor)) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] Rates rates(const RuleInput& input) override {
    return scaled(input, factor_(input));
  }

 private:
  std::string name_;
  std::function<double(const RuleInput& input)> factor_;
};

/// The rules that can be asked for by name: the built-in ones, and a user's own.
///
///   constant         constant_rule.hpp
///   linear           linear_rule.hpp
///   root             root_rule.hpp
///   linear-momentum  linear_momentum_rule.hpp
///   adascale         adascale_rule.hpp
///   lbsgd            lbsgd_rule.hpp
///
/// strategies() has their arguments. All whose rate follows the batch size take ramp=N, too:
/// RampRule over N steps. What does nothing with the other arguments (epochs=3 with warmup=lars) is
/// refused.
class RuleRegistry {
 public:
  /// Reads the arguments that the rule takes, given or not: they are described by that.
  using Maker = std::function<std::unique_ptr<Rule>(Spec& arguments)>;
  /// The factor on the base learning rate.
  using Factor = std::function<double(const RuleInput& input)>;

  /// The built-in rules.
  RuleRegistry();

  /// Adds a rule of the user's own; `help` says what it is. Throws Error where the name is taken.
  void add(std::string name, Maker maker, std::string help = {});
  /// The same for a rule that is a function (FunctionRule).
  void add(const std::string& name, Factor factor, std::string help = {});

  [[nodiscard]] std::vector<std::string_view> names() const;
  /// All of them with their arguments. Throws what a maker throws without arguments.
  [[nodiscard]] std::vector<Strategy> strategies() const;

  /// The rule that `spec` asks for (base/spec.hpp): "linear", "adascale:smoothing=0.9". Throws
  /// Error for an unknown name, with the nearest, and for arguments that the rule does not take.
  [[nodiscard]] std::unique_ptr<Rule> make(std::string_view spec) const;

 private:
  struct Row {
    std::string name;
    std::string help;
    Maker make;
  };

  // Without finish().
  static std::unique_ptr<Rule> read(const Row& row, Spec& arguments);

  std::vector<Row> rows_;
};

/// The built-in rules alone.
[[nodiscard]] std::unique_ptr<Rule> make_rule(std::string_view spec);
[[nodiscard]] std::vector<std::string_view> rule_names();
[[nodiscard]] std::vector<Strategy> rules();

}  // namespace rubato
