#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/loop/optimizer.hpp>

namespace rubato {

/// Lookahead around any optimizer (Zhang et al. 2019, "Lookahead optimizer: k steps forward, 1 step
/// back"): every k updates
///
///     slow = slow + alpha (fast - slow),    fast = slow
///
/// The inner optimizer's own state (momentum) does not change. A tensor that is not reached by the
/// update in which fast and slow weights meet keeps both.
///
/// T is float or double.
template <class T>
class Lookahead final : public FlatOptimizer<T> {
 public:
  /// The number of values that it remembers for each parameter besides the inner optimizer's.
  static constexpr int kRemembered = 1;

  /// The layout is that of the inner optimizer; updates that do not reach all tensors need it. With
  /// `in_samples`, k counts reference batches: weights meet once the steps since their last meeting
  /// have as many samples. Throws Error for an option out of range.
  Lookahead(std::unique_ptr<FlatOptimizer<T>> fast, const LookaheadOptions& options,
            ParameterLayout layout = {}, bool in_samples = false);

  void step(const Update<T>& update, Workers& workers) override;
  void visit_state(StateVisitor& state) override;
  /// Returns the slow weights, unless the options say otherwise.
  [[nodiscard]] std::span<T> shown() override {
    return options_.weights == LookaheadWeights::slow ? std::span<T>(slow_) : fast_->shown();
  }
  [[nodiscard]] bool needs_parameter_norms() const override {
    return fast_->needs_parameter_norms();
  }
  [[nodiscard]] bool needs_minibatch_squares() const override {
    return fast_->needs_minibatch_squares();
  }
  [[nodiscard]] bool follows_sums() const override { return fast_->follows_sums(); }
  [[nodiscard]] OptimizerNumbers numbers() const override { return fast_->numbers(); }
  [[nodiscard]] bool fill_metric(std::span<T> diagonal, Workers& workers) const override {
    return fast_->fill_metric(diagonal, workers);
  }

 private:
  // Returns whether the weights meet after the update.
  [[nodiscard]] bool is_due(const Update<T>& update);
  void meet(const Update<T>& update, Workers& workers);

  std::unique_ptr<FlatOptimizer<T>> fast_;
  LookaheadOptions options_;
  ParameterLayout layout_;
  // Empty before the first update.
  std::vector<T> slow_;
  bool in_samples_;
  // The number of updates since the slow weights were first set, and the samples of those since the
  // last meeting, if they are counted.
  std::int64_t updates_ = 0;
  std::int64_t samples_ = 0;
};

extern template class Lookahead<float>;
extern template class Lookahead<double>;

/// Throws Error for an option of the optimizer or of a group that is out of range.
void require_valid(const OptimizerOptions& options, const std::vector<GroupOptions>& groups);

/// Makes the optimizer of that method. It gives the same bits for every number of threads. Throws
/// Error for an option out of range, also of a group.
template <class T>
[[nodiscard]] std::unique_ptr<FlatOptimizer<T>> make_optimizer(const OptimizerOptions& options,
                                                               const ParameterLayout& layout,
                                                               std::vector<GroupOptions> groups);

/// The facts of a method with its options, known before an optimizer is made.
struct MethodFacts {
  /// The learning rate that it is usually tried with first: a search for the best begins there.
  double usual_rate = 0.1;
  /// The momentum of runs that choose none; empty if OptimizerOptions::momentum does not apply.
  std::optional<double> usual_momentum{};
  /// The form of momentum, if the method has two and one of them was chosen.
  std::optional<MomentumForm> momentum_form{};
  /// FlatOptimizer::follows_sums(), and FlatOptimizer::needs_minibatch_squares().
  bool follows_sums = false;
  bool squares = false;
  /// True if it has the betas of Adam.
  bool betas = false;
  /// True if each layer has a rate of its own (GroupOptions::layer_wise).
  bool layer_wise = false;
  /// True if it remembers only zeros before its first update.
  bool begins_with_zeros = true;
  /// The pattern of the parameters that are not updated as matrices, one of which must exist; empty
  /// for none.
  std::string elements{};
  /// The most values for each parameter that it remembers, besides a velocity, and that an update
  /// needs besides those.
  int remembered = 0;
  int scratch = 0;
  /// The options that decide what is remembered, in a word; for memory_kind().
  std::string memory{};
  /// The values to which states are bound, by name; empty ones are left out.
  std::vector<std::pair<std::string_view, std::string>> bound{};
};
[[nodiscard]] MethodFacts facts_of(const OptimizerMethod& method);

/// Returns whether the optimizer has a momentum or a beta1 (OptimizerNumbers).
[[nodiscard]] bool has_momentum(const OptimizerOptions& options);

/// Sets Nesterov's momentum among the options of a method. Throws Refused if it has no such option.
void set_nesterov(OptimizerMethod& method);

/// The number of values that the optimizer remembers for each parameter, at most: 1 for a momentum,
/// 2 for Adam.
[[nodiscard]] int remembered_values(const OptimizerOptions& options,
                                    const std::vector<GroupOptions>& groups);

/// Describes the memory of an optimizer: equal for optimizers that can continue from each other's.
[[nodiscard]] std::string memory_kind(const OptimizerOptions& options);

/// The pattern of options that takes all parameters of one dimension. All others are shell patterns
/// of names.
inline constexpr std::string_view kVectorsPattern = "vectors";
/// Returns whether a pattern of an option takes a parameter.
[[nodiscard]] bool takes(const std::string& pattern, const NamedArray& array);

/// The shape of a tensor of at least two dimensions as a matrix; without rows for any other, and
/// for one that the method's options exclude (MethodFacts::elements).
[[nodiscard]] MatrixShape matrix_shape(const OptimizerMethod& method, const NamedArray& array);

}  // namespace rubato
