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
#include <variant>
#include <vector>

#include <rubato/base/parse.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/workers.hpp>
#include <rubato/numbers/rule.hpp>

namespace rubato {

struct Strategy;  // base/spec.hpp

inline constexpr std::array<Choice<MomentumForm>, 2> kMomentumForms{
    {{MomentumForm::pytorch, "pytorch"}, {MomentumForm::mxnet, "mxnet"}}};

/// Stochastic gradient descent with momentum (sgd_step() has the formula). In MXNet's form of
/// momentum, with d = gradient + weight decay x w,
///
///     v = momentum v + rate d
///     w = w - (nesterov ? rate d + momentum v : v)
struct SgdOptions {
  /// Nesterov's form; needs a momentum above 0.
  bool nesterov = false;
  /// The place of the learning rate in the momentum. By default the rule's own, if it has one
  /// (Rule::momentum_form()); otherwise PyTorch's.
  std::optional<MomentumForm> momentum_form{};

  friend bool operator==(const SgdOptions&, const SgdOptions&) = default;
};

/// Layer-wise adaptive rate scaling (You, Gitman and Ginsburg 2017, "Large batch training of
/// convolutional networks", algorithm 1). For every tensor
///
///     lambda = trust |w| / (|g| + weight_decay |w|)
///     v = momentum v + rate lambda (g + weight_decay w)
///     w = w - v
///
/// and in PyTorch's form of momentum v = momentum v + g + weight_decay w, w = w - rate lambda v.
///
/// If |w| or |g| is 0 there is nothing to adapt to, and lambda is 1, as it is for groups without
/// GroupOptions::layer_wise.
struct LarsOptions {
  /// The form as in SgdOptions, but by default the paper's, which is MXNet's.
  std::optional<MomentumForm> momentum_form{};
  /// The trust coefficient, above 0.
  double trust = 0.001;

  friend bool operator==(const LarsOptions&, const LarsOptions&) = default;
};

/// The squares that Adam's second moment averages.
enum class SecondMoment {
  /// The square of the mean gradient of the step: its noise, and with it v, falls with the batch.
  mean,
  /// The mean of the squares of the minibatches' gradients, which does not depend on how many they
  /// are (Wang and Aitchison 2024, "Batch size invariant Adam", arXiv 2402.18824).
  minibatch,
};

inline constexpr std::array<Choice<SecondMoment>, 2> kSecondMoments{
    {{SecondMoment::mean, "mean"}, {SecondMoment::minibatch, "minibatch"}}};

/// Adam (Kingma and Ba 2015, "Adam: a method for stochastic optimization", algorithm 1), with
/// AMSGrad (Reddi, Kale and Kumar 2018, "On the convergence of Adam and beyond", algorithm 2) and
/// AdamW's decoupled weight decay (Loshchilov and Hutter 2019, "Decoupled weight decay
/// regularization", algorithm 2) on request. In step t, counted from 1 (and for each tensor
/// separately, if some steps do not reach it), with g the gradient that is applied,
///
///     g = g + weight_decay w                     where the decay is not decoupled
///     w = (1 - rate weight_decay) w              where it is
///     m = beta1 m + (1 - beta1) g
///     v = beta2 v + (1 - beta2) g g
///     u = amsgrad ? max(u, v) : v
///     w = w - rate / (1 - beta1^t) m / (sqrt(u) / sqrt(1 - beta2^t) + epsilon)
///
/// With SecondMoment::minibatch, the mean over the minibatches' gradients g_i of g_i g_i takes the
/// place of g g, with g_i + weight_decay w for g_i where the decay is not decoupled:
///
///     v = beta2 v + (1 - beta2) (g g + variance),    variance = max(mean(g_i g_i) - mean(g_i)^2,
///     0)
///
/// Each operation of Adam, RMSprop and Adagrad is the same as in libtorch 1.13.1, and rounded once.
/// A quotient is 0 if its divisor is 0, which can happen only if epsilon is 0. Powers are computed
/// as products, because std::pow() need not give the same bits on every CPU.
struct AdamOptions {
  /// The decay rates of the moments, both in [0, 1).
  double beta1 = 0.9;
  double beta2 = 0.999;
  bool amsgrad = false;
  /// Added to the root of the second moment, at least 0.
  double epsilon = 1e-8;
  /// True if the weight decay shortens the parameter itself, which is AdamW; false if it is added
  /// to the gradient.
  bool decoupled = false;
  SecondMoment second_moment = SecondMoment::mean;

  friend bool operator==(const AdamOptions&, const AdamOptions&) = default;
};

/// RMSprop (Tieleman and Hinton 2012, Coursera "Neural networks for machine learning", lecture 6e),
/// centred as by Graves 2013 ("Generating sequences with recurrent neural networks", equations 38
/// to 45) on request. With g the gradient that is applied, its weight decay included,
///
///     s = alpha s + (1 - alpha) g g
///     a = alpha a + (1 - alpha) g                where it is centred
///     d = sqrt(centered ? s - a a : s) + epsilon
///     w = w - rate g / d                         without momentum
///     b = momentum b + g / d,  w = w - rate b    with it
///
/// If rounding makes s - a a negative, it is taken as 0 (libtorch computes NaN).
struct RmspropOptions {
  /// The smoothing of the squares, in [0, 1).
  double alpha = 0.99;
  /// True to divide gradients by their deviation instead of the root of their mean square.
  bool centered = false;
  /// Added to the divisor, at least 0.
  double epsilon = 1e-8;

  friend bool operator==(const RmspropOptions&, const RmspropOptions&) = default;
};

/// Adagrad with a diagonal matrix (Duchi, Hazan and Singer 2011, "Adaptive subgradient methods for
/// online learning and stochastic optimization", figure 1). In step t, counted from 1, with g the
/// gradient that is applied, its weight decay included,
///
///     s = s + g g
///     w = w - rate / (1 + (t - 1) lr_decay) g / (sqrt(s) + epsilon)
struct AdagradOptions {
  /// The decay of the learning rate, at least 0.
  double lr_decay = 0;
  /// The initial value of the sums of squares, at least 0.
  double initial_accumulator = 0;
  /// Added to the root of the sum of squares, at least 0.
  double epsilon = 1e-10;

  friend bool operator==(const AdagradOptions&, const AdagradOptions&) = default;
};

/// The factor of Muon's orthogonal updates.
enum class MuonScale {
  /// 0.2 sqrt(max(rows, columns)), which gives the elements of an update the root mean square that
  /// AdamW's usually have, so that one learning rate suits both (Liu et al. 2025, "Muon is scalable
  /// for LLM training", section 2.2).
  adamw,
  /// sqrt(max(1, rows / columns)), of Jordan's implementation; such rates are around 0.02.
  jordan,
};

inline constexpr std::array<Choice<MuonScale>, 2> kMuonScales{
    {{MuonScale::adamw, "adamw"}, {MuonScale::jordan, "jordan"}}};

/// Muon (Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks"). With G the
/// gradient that is applied to a matrix, its rows x columns as ParameterLayout::matrices says,
///
///     M = momentum M + (1 - momentum) G
///     U = nesterov ? momentum M + (1 - momentum) G : M
///     X = U / (|U| + 1e-7), transposed if it has more rows than columns
///     X = a X + (b A + c A A) X    with A = X X^T, `steps` times (Newton and Schulz)
///     W = (1 - rate weight_decay) W - rate scale X
///
/// where |U| is Frobenius' norm, a = 3.4445, b = -4.7750 and c = 2.0315. All other tensors, and
/// those whose names match `adamw`, are updated by AdamW at the same rate. Each element of a
/// product is summed in ascending order, every operation rounded once.
struct MuonOptions {
  /// In [0, 1).
  double momentum = 0.95;
  bool nesterov = true;
  /// At least 1.
  std::int64_t steps = 5;
  MuonScale scale = MuonScale::adamw;
  /// A shell pattern; empty for none. Embeddings and the last layer are usually AdamW's.
  std::string adamw{};
  /// The betas and the epsilon of AdamW.
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;

  friend bool operator==(const MuonOptions&, const MuonOptions&) = default;
};

using OptimizerMethod =
    std::variant<SgdOptions, LarsOptions, AdamOptions, RmspropOptions, AdagradOptions, MuonOptions>;

/// The optimizer that makes the shared update, with its options. Names and defaults are those of
/// torch.optim. The learning rate is not an option, because schedule and rule set it at every step.
struct OptimizerOptions {
  OptimizerMethod method{};
  /// The momentum of SGD, LARS and RMSprop, in [0, 1); others have none.
  double momentum = 0;
  /// The L2 penalty of every method, at least 0; AdamW's and Muon's are decoupled.
  double weight_decay = 0;

  friend bool operator==(const OptimizerOptions&, const OptimizerOptions&) = default;
};

/// Returns the optimizer that `spec` asks for (base/spec.hpp), with the weight decay and momentum
/// of `defaults` and, if its method is the same, the options of that; optimizers() lists the
/// arguments.
///
/// Throws Error for an unknown name, suggesting the nearest, and for arguments that the optimizer
/// does not take.
[[nodiscard]] OptimizerOptions parse_optimizer(std::string_view spec,
                                               const OptimizerOptions& defaults);
/// All optimizers, with the arguments' own defaults.
[[nodiscard]] std::vector<Strategy> optimizers();
[[nodiscard]] std::vector<std::string_view> optimizer_names();
/// The name of the method.
[[nodiscard]] std::string_view optimizer_name(const OptimizerMethod& method);

/// Returns the method's own options, or their defaults if it is another method.
template <class Options>
[[nodiscard]] Options method_options(const OptimizerMethod& method) {
  const auto* const options = std::get_if<Options>(&method);
  return options == nullptr ? Options() : *options;
}

/// Throws Error for an option that is out of range, or that cannot be combined with the others.
void require_valid(const OptimizerOptions& options);

/// The moment at which the slow weights of Lookahead are set to the fast ones.
enum class LookaheadStart {
  before_first_update,  ///< as in the paper
  after_first_update,   ///< as in some implementations
};

inline constexpr std::array<Choice<LookaheadStart>, 2> kLookaheadStarts{
    {{LookaheadStart::before_first_update, "before"},
     {LookaheadStart::after_first_update, "after"}}};

/// The weights of Lookahead that are tested and saved as the model.
enum class LookaheadWeights {
  /// The slow weights, which the paper evaluates.
  slow,
  /// The fast weights, which the inner optimizer updates.
  fast,
};

inline constexpr std::array<Choice<LookaheadWeights>, 2> kLookaheadWeights{
    {{LookaheadWeights::slow, "slow"}, {LookaheadWeights::fast, "fast"}}};

struct LookaheadOptions {
  /// The number of inner updates between two updates of the slow weights, at least 1.
  std::int64_t k = 5;
  /// The fraction of the way that the slow weights move towards the fast ones, in (0, 1].
  double alpha = 0.5;
  LookaheadStart start = LookaheadStart::before_first_update;
  LookaheadWeights weights = LookaheadWeights::slow;

  friend bool operator==(const LookaheadOptions&, const LookaheadOptions&) = default;
};

/// A tensor as an optimizer of matrices sees it: its first dimension, and all others together.
struct MatrixShape {
  /// 0 for a tensor that is not a matrix: a vector, or one that the options exclude.
  std::size_t rows = 0;
  std::size_t columns = 0;
};

/// The parameter tensors of a model in their flat buffer, one after the other.
struct ParameterLayout {
  /// The end of each tensor, the padding after it included. Ascending.
  std::vector<std::size_t> layer_ends;
  /// The group of each tensor.
  std::vector<std::size_t> layer_groups;
  /// The shape of each tensor as a matrix; those beyond the list are not matrices.
  std::vector<MatrixShape> matrices{};
  /// A factor of the learning rate of each tensor (TrainOptions::rate_factors), at least 0; those
  /// beyond the list are 1.
  std::vector<double> rate_factors{};

  /// A layout of one tensor in one group.
  [[nodiscard]] static ParameterLayout whole(std::size_t size) { return {{size}, {0}, {}}; }

  [[nodiscard]] std::size_t layers() const { return layer_ends.size(); }
  [[nodiscard]] std::size_t size() const { return layer_ends.empty() ? 0 : layer_ends.back(); }
};

/// The ways in which the parameters of a group are treated differently.
struct GroupOptions {
  /// A factor of the learning rate, at least 0.
  double learning_rate_factor = 1;
  /// Values that replace the optimizer's own, if set.
  std::optional<double> weight_decay{};
  std::optional<double> momentum{};
  /// True if layer-wise rates (LARS) apply.
  bool layer_wise = true;
};

/// The arguments of one update.
template <class T>
struct Update {
  std::span<T> parameters;
  /// The sum of the minibatches' gradients.
  std::span<const T> gradient_sum;
  /// The gradient is this factor times the sum: 1 / minibatches for the mean, reduced by clipping.
  T gradient_factor = 1;
  /// The bound of every element of that gradient: [-clip, clip]; above 0.
  T clip = std::numeric_limits<T>::infinity();
  Rates rates;
  std::int64_t batch_size = 1;
  std::int64_t reference_batch_size = 1;
  /// The norms of each tensor and of its gradient with its factor; empty unless the optimizer needs
  /// them.
  std::span<const ParameterNorms> layers{};
  /// The number of mean gradients that the gradient is the sum of: the minibatches of the step for
  /// a rule that sums gradients, else 1. Rates that are divided by the gradient's norm are
  /// multiplied by it; otherwise they would undo the rule's sum.
  double summed = 1;
  /// Tensors without a gradient, in ascending order: their parameters and the optimizer's state for
  /// them stay unchanged, as in PyTorch when a gradient is None.
  std::span<const std::size_t> unreached{};
  /// The sum of the squares of the minibatches' gradients, each weighted like its gradient; empty
  /// unless the optimizer needs it. Their mean is `square_factor` times the sum, which contains the
  /// square of the factor by which the gradient was clipped.
  std::span<const T> square_sum{};
  T square_factor = 1;
};

/// An optimizer on the one flat buffer of parameters that all replicas share. It is called once for
/// each step, and gives the same bits for every number of threads.
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
  /// Visits what the optimizer remembers from step to step. Throws Error for the state of a
  /// different optimizer.
  virtual void visit_state(StateVisitor& state) = 0;
  /// The values to test and to save instead of the parameters, equally many, and writable so that
  /// they can be exchanged with the parameters for that time. Empty if the parameters themselves
  /// are tested and saved.
  [[nodiscard]] virtual std::span<T> shown() { return {}; }
  /// Returns whether Update::layers must be filled.
  [[nodiscard]] virtual bool needs_parameter_norms() const { return false; }
  /// Returns whether Update::square_sum must be filled. Each leaf of the sum is then larger by as
  /// many values as there are parameters, which the estimate of memory before training knows of
  /// rubato's own optimizers only.
  [[nodiscard]] virtual bool needs_minibatch_squares() const { return false; }
  /// Returns whether a rule that sums gradients (GradientReduction::sum) has its intended effect:
  /// the step grows with the gradient, and the weight decay with Rates::weight_decay_factor.
  [[nodiscard]] virtual bool follows_sums() const { return true; }
  /// Returns the numbers that a rule may answer. step() follows the answers to those that are not
  /// empty (Rates::optimizer); others are never given.
  [[nodiscard]] virtual OptimizerNumbers numbers() const { return {}; }
  /// Fills the diagonal of the optimizer's metric, as many values as there are parameters: the
  /// numbers by which it multiplies gradients besides the rate, such as Adam's 1 / (sqrt(v) +
  /// epsilon) with v before the next update and without bias; 0 for parameters of which it
  /// remembers too little. Returns false if these are all, as before the first update. Called only
  /// if numbers() has a metric.
  [[nodiscard]] virtual bool fill_metric(std::span<T> diagonal, Workers& workers) const {
    static_cast<void>(diagonal);
    static_cast<void>(workers);
    return false;
  }
};

/// A parameter tensor in training.
struct TrainedArray {
  NamedArray array;
  /// The end of the tensor in the flat parameters, the padding after it included.
  std::size_t end = 0;
};

/// The parameters that an optimizer will update. Its rate of a tensor is that of the step times
/// GroupOptions::learning_rate_factor of the tensor's group and ParameterLayout::rate_factors.
struct OptimizerParts {
  ParameterLayout layout;
  /// The parameter tensors in the order of the layout. The arrays outlive the optimizer.
  std::vector<TrainedArray> trained;
  /// The options of each parameter group.
  std::vector<GroupOptions> groups;
};

/// Makes a user's own optimizer, for parameters of either type.
struct OwnOptimizer {
  std::function<std::unique_ptr<FlatOptimizer<float>>(const OptimizerParts& parts)> of_float{};
  std::function<std::unique_ptr<FlatOptimizer<double>>(const OptimizerParts& parts)> of_double{};
  /// The number of values that it remembers for each parameter, for the estimate of memory before
  /// training; 0 if unknown.
  int remembered = 0;

  [[nodiscard]] explicit operator bool() const { return of_float || of_double; }
};

/// Parameters that are treated differently. A parameter belongs to the first group that takes it;
/// all parameters that no group takes form group 0, which has default options.
struct ParameterGroup {
  std::string name;
  std::function<bool(const NamedArray&)> takes;
  GroupOptions options{};
};

/// The usual group of parameters that must not decay: those of one dimension, which are biases and
/// the scales and shifts of normalisation. Layer-wise rates do not apply to them, either.
[[nodiscard]] ParameterGroup no_decay_for_vectors();

/// A group without decay of the parameters whose name matches a shell pattern ("*.bias").
[[nodiscard]] ParameterGroup no_decay_for(const std::string& pattern);

/// A factor of the learning rate of some parameters, such as 10 for a new head and 0 for a stem
/// that stays as it is. It is multiplied with GroupOptions::learning_rate_factor of a parameter's
/// group, but makes no group of its own: what rules measure in each group does not change, and a
/// fork may have other factors than its run.
struct RateFactor {
  /// A shell pattern of names ("head.*"), or "vectors" for all parameters of one dimension.
  std::string pattern{};
  /// At least 0 and finite.
  double factor = 1;

  friend bool operator==(const RateFactor&, const RateFactor&) = default;
};

}  // namespace rubato
