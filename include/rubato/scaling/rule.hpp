#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace rubato {

/// What the gradients of a step's minibatches are reduced to before the update.
enum class GradientReduction {
  mean,  ///< their mean: the gradient of the mean loss of the batch
  sum,   ///< their sum
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

  /// Scale S: the batch size relative to the reference batch size.
  [[nodiscard]] double scale() const {
    return static_cast<double>(batch_size) / static_cast<double>(reference_batch_size);
  }
  /// Minibatches in the step.
  [[nodiscard]] std::int64_t minibatches() const { return batch_size / minibatch_size; }
};

/// What a rule answers.
struct Rates {
  /// The rate relative to the mean gradient: what is reported, comparable between rules.
  double learning_rate = 0;
  /// The rate by which the optimizer multiplies the gradient as reduced; the learning rate itself
  /// for a rule of mean gradients.
  double update_rate = 0;
  /// The factor on the weight decay of this step.
  double weight_decay_factor = 1;
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
  /// The rates of the next step. Called once for each step, in their order.
  [[nodiscard]] virtual Rates rates(const RuleInput& input) = 0;
};

/// The names that make_rule() accepts.
[[nodiscard]] std::span<const std::string_view> rule_names();

/// The rule of that name. Throws Error, naming the nearest, when there is none.
[[nodiscard]] std::unique_ptr<Rule> make_rule(std::string_view name);

}  // namespace rubato
