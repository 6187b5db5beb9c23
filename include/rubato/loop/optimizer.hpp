#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/parse.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/workers.hpp>
#include <rubato/numbers/rule.hpp>

namespace rubato {

struct Strategy;  // base/spec.hpp

enum class OptimizerKind { sgd, lars, adam, adamw, rmsprop, adagrad };

inline constexpr std::array<Choice<OptimizerKind>, 6> kOptimizers{
    {{OptimizerKind::sgd, "sgd"},
     {OptimizerKind::lars, "lars"},
     {OptimizerKind::adam, "adam"},
     {OptimizerKind::adamw, "adamw"},
     {OptimizerKind::rmsprop, "rmsprop"},
     {OptimizerKind::adagrad, "adagrad"}}};

inline constexpr std::array<Choice<MomentumForm>, 2> kMomentumForms{
    {{MomentumForm::pytorch, "pytorch"}, {MomentumForm::mxnet, "mxnet"}}};

/// Which optimizer makes the shared update, and with what. The names and the defaults are
/// torch.optim's; the learning rate is not among them, as schedule and rule set it at every step.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::sgd;
  /// Of SGD, LARS and RMSprop, in [0, 1).
  double momentum = 0;
  /// Of all kinds, at least 0: the L2 penalty, for AdamW the decoupled one.
  double weight_decay = 0;
  /// Of SGD.
  bool nesterov = false;
  /// Of SGD and LARS: where the rate enters momentum. By default the rule's own, where it has one
  /// (Rule::momentum_form()), else PyTorch's for SGD, and the paper's, which is MXNet's, for LARS.
  std::optional<MomentumForm> momentum_form{};
  /// Of LARS: the trust coefficient, above 0.
  double trust = 0.001;
  /// Of Adam and AdamW, both in [0, 1).
  double beta1 = 0.9;
  double beta2 = 0.999;
  bool amsgrad = false;
  /// Of RMSprop: the smoothing of the squares, in [0, 1).
  double alpha = 0.99;
  bool centered = false;
  /// Of Adagrad, both at least 0.
  double lr_decay = 0;
  double initial_accumulator = 0;
  /// Of Adam, AdamW, RMSprop and Adagrad, at least 0.
  double epsilon = 1e-8;

  friend bool operator==(const OptimizerOptions&, const OptimizerOptions&) = default;
};

/// The optimizer that `spec` asks for (base/spec.hpp), with the weight decay, momentum and Nesterov
/// form of `defaults`; optimizers() has the arguments.
///
/// Throws Error for an unknown name, with the nearest, and for arguments that it does not take.
[[nodiscard]] OptimizerOptions parse_optimizer(std::string_view spec,
                                               const OptimizerOptions& defaults);
/// All of them, with the arguments' own defaults.
[[nodiscard]] std::vector<Strategy> optimizers();

/// Whether the kind has a momentum that can be chosen.
[[nodiscard]] bool has_momentum(OptimizerKind kind);

/// Throws Error for an option that is out of its range, or that does not go with the others.
void require_valid(const OptimizerOptions& options);

/// When the slow weights of Lookahead are set to the fast ones.
enum class LookaheadStart {
  /// Before the first update, as in the paper.
  before_first_update,
  /// After the first update, as some implementations have it.
  after_first_update,
};

inline constexpr std::array<Choice<LookaheadStart>, 2> kLookaheadStarts{
    {{LookaheadStart::before_first_update, "before"},
     {LookaheadStart::after_first_update, "after"}}};

/// The weights of Lookahead that are tested and saved as the model.
enum class LookaheadWeights {
  /// The paper evaluates these.
  slow,
  /// The inner optimizer updates these.
  fast,
};

inline constexpr std::array<Choice<LookaheadWeights>, 2> kLookaheadWeights{
    {{LookaheadWeights::slow, "slow"}, {LookaheadWeights::fast, "fast"}}};

struct LookaheadOptions {
  /// Updates between two meetings, at least 1.
  std::int64_t k = 5;
  /// How far the slow weights go to the fast ones when they meet, in (0, 1].
  double alpha = 0.5;
  LookaheadStart start = LookaheadStart::before_first_update;
  LookaheadWeights weights = LookaheadWeights::slow;

  friend bool operator==(const LookaheadOptions&, const LookaheadOptions&) = default;
};

/// The parameter tensors of a model in their flat buffer, one after the other.
struct ParameterLayout {
  /// Where each tensor ends, the padding behind it included. Ascending.
  std::vector<std::size_t> layer_ends;
  /// The group of each tensor.
  std::vector<std::size_t> layer_groups;

  /// One tensor, of one group.
  [[nodiscard]] static ParameterLayout whole(std::size_t size) { return {{size}, {0}}; }

  [[nodiscard]] std::size_t layers() const { return layer_ends.size(); }
  [[nodiscard]] std::size_t size() const { return layer_ends.empty() ? 0 : layer_ends.back(); }
};

/// In what the parameters of a group are treated differently.
struct GroupOptions {
  /// On the learning rate, at least 0.
  double learning_rate_factor = 1;
  /// Where they are not the optimizer's own.
  std::optional<double> weight_decay{};
  std::optional<double> momentum{};
  /// Whether layer-wise rates (LARS) apply.
  bool layer_wise = true;
};

/// One update, to be made.
template <class T>
struct Update {
  std::span<T> parameters;
  /// The sum of the minibatches' gradients.
  std::span<const T> gradient_sum;
  /// The gradient is this times the sum: 1 / minibatches for the mean, and what clipping makes of
  /// it.
  T gradient_factor = 1;
  /// Every element of that gradient is bounded to [-clip, clip]; above 0.
  T clip = std::numeric_limits<T>::infinity();
  Rates rates;
  /// Of each tensor, the gradient with its factor; where the optimizer needs them.
  std::span<const ParameterNorms> layers{};
  /// How many mean gradients that gradient is the sum of: the minibatches of the step for a rule
  /// that sums gradients, else 1. Rates that are divided by the gradient's norm are multiplied by
  /// it, or they would take back what the rule does.
  double summed = 1;
  /// Tensors without a gradient, in ascending order: their parameters and what the optimizer
  /// remembers of them stay as they are, as in PyTorch where a gradient is None.
  std::span<const std::size_t> unreached{};
};

/// An optimizer on the one flat buffer of parameters that all replicas share. It is called once for
/// each step, and the result is the same bits for every number of threads.
///
/// T is float or double.
template <class T>
class FlatOptimizer {
 public:
  FlatOptimizer() = default;
  FlatOptimizer(const FlatOptimizer&) = delete;
  FlatOptimizer& operator=(const FlatOptimizer&) = delete;
  virtual ~FlatOptimizer() = default;

  virtual void step(const Update<T>& update, Workers& workers) = 0;
  /// What it remembers from step to step. Throws Error for a state that is not of such an
  /// optimizer.
  virtual void visit_state(StateVisitor& state) = 0;
  /// The values to test and to save instead of the parameters, as many as those, and writable to
  /// be exchanged with them for that time; empty where the parameters themselves are meant.
  [[nodiscard]] virtual std::span<T> shown() { return {}; }
  /// Whether Update::layers must be there.
  [[nodiscard]] virtual bool needs_parameter_norms() const { return false; }
  /// Whether rules that sum gradients (GradientReduction::sum) do with it what they say: the step
  /// grows with the gradient, and the weight decay with Rates::weight_decay_factor.
  [[nodiscard]] virtual bool follows_sums() const { return true; }
};

/// A parameter tensor in training.
struct TrainedArray {
  NamedArray array;
  /// Where it ends in the flat parameters, padding behind it included.
  std::size_t end = 0;
};

/// What an optimizer is made for.
struct OptimizerParts {
  ParameterLayout layout;
  /// In the order of the layout. The arrays outlive the optimizer.
  std::vector<TrainedArray> trained;
  /// Of each parameter group.
  std::vector<GroupOptions> groups;
};

/// Makes an optimizer of the user's own, for parameters of either type.
struct OwnOptimizer {
  std::function<std::unique_ptr<FlatOptimizer<float>>(const OptimizerParts& parts)> of_float{};
  std::function<std::unique_ptr<FlatOptimizer<double>>(const OptimizerParts& parts)> of_double{};
  /// How many values it remembers of each parameter, for the memory that training is known to need
  /// before it begins; 0 where nobody says.
  int remembered = 0;

  [[nodiscard]] explicit operator bool() const { return of_float || of_double; }
};

/// Parameters that are treated differently. A parameter belongs to the first group that takes it;
/// those that no group takes are a group of their own, number 0, with nothing different.
struct ParameterGroup {
  std::string name;
  std::function<bool(const NamedArray&)> takes;
  GroupOptions options{};
};

/// The common group of parameters that must not decay: those of one dimension, which are biases
/// and the scales and shifts of normalisation. Layer-wise rates leave them alone, too.
[[nodiscard]] ParameterGroup no_decay_for_vectors();

/// A group without decay of the parameters whose name matches a shell pattern ("*.bias").
[[nodiscard]] ParameterGroup no_decay_for(const std::string& pattern);

}  // namespace rubato
