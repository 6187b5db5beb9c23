#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
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

/// The number of values that the optimizer remembers for each parameter: 1 for a momentum, 2 for
/// Adam. It is a bound for Muon, which remembers 1 of a matrix.
[[nodiscard]] int remembered_values(const OptimizerOptions& options,
                                    const std::vector<GroupOptions>& groups);

/// The same for Adam, RMSprop and Adagrad, whose options have been checked.
template <class T>
[[nodiscard]] std::unique_ptr<FlatOptimizer<T>> make_adaptive(const OptimizerOptions& options,
                                                              const ParameterLayout& layout,
                                                              std::vector<GroupOptions> groups);
[[nodiscard]] int adaptive_values(const OptimizerOptions& options,
                                  const std::vector<GroupOptions>& groups);

/// Describes the memory of an optimizer: equal for optimizers that can continue from each other's.
[[nodiscard]] std::string memory_kind(const OptimizerOptions& options);

/// The most values that the optimizer needs for each parameter during an update besides those.
[[nodiscard]] inline int working_values(const OptimizerOptions& options) {
  return std::holds_alternative<MuonOptions>(options.method) ? 4 : 0;
}

/// Adam and AdamW.
template <class T>
[[nodiscard]] std::unique_ptr<FlatOptimizer<T>> make_adam(const OptimizerOptions& options,
                                                          const ParameterLayout& layout,
                                                          std::vector<GroupOptions> groups);

/// Muon, which updates the matrices of the layout, with AdamW for all other tensors.
template <class T>
[[nodiscard]] std::unique_ptr<FlatOptimizer<T>> make_muon(const OptimizerOptions& options,
                                                          const ParameterLayout& layout,
                                                          std::vector<GroupOptions> groups);
/// The shape of a tensor of at least two dimensions as a matrix; without rows for any other, and
/// for one that the method's options exclude (MuonOptions::adamw).
[[nodiscard]] MatrixShape matrix_shape(const OptimizerMethod& method, const NamedArray& array);

}  // namespace rubato
