#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>

#include <rubato/loop/trainer.hpp>
#include <rubato/loop/workers.hpp>
#include <rubato/steps/plan.hpp>

#include "transform_chain.hpp"

namespace rubato {

/// The gradient that an optimizer will apply: `factor` times the sum, each element bounded to
/// [-clip, clip].
template <class T>
struct AppliedGradient {
  T factor = 1;
  T clip = std::numeric_limits<T>::infinity();
  /// The gradient in the sum, if it was changed after it was measured.
  std::span<const T> changed{};
};

/// The sum of a step's gradients, and what the rule and the optimizer need of it.
template <class T>
struct SummedGradient {
  /// The sum, which is changed in place.
  std::span<T> sum;
  std::span<const T> parameters;
  const StepPlan& step;
  EpochIndex epoch{};
  /// The norm of the mean gradient, if gradients are clipped by their norm.
  std::optional<double> norm{};
  /// True if the rule applies the mean, false if it applies the sum.
  bool of_mean = true;
  /// True if the optimizer uses the norms of the gradient that it applies.
  bool norms_wanted = false;
};

/// Clips and transforms the gradient of a step, as the options say.
///
/// T is float or double.
template <class T>
class GradientPreparation {
 public:
  /// The options outlive it. Throws Error for a transform that does not support T.
  GradientPreparation(const TrainOptions& options, TransformParts parts)
      : options_(options), transforms_(options.gradient_transforms, std::move(parts)) {}

  /// Calls `before_change` before it changes the state of a transform. Throws whatever transforms
  /// throw.
  [[nodiscard]] AppliedGradient<T> prepare(const SummedGradient<T>& gradient,
                                           const std::function<void()>& before_change,
                                           Workers& workers);

  void visit_state(StateVisitor& state) { transforms_.visit_state(state); }

 private:
  // The optimizer clips during its update, which saves a pass.
  [[nodiscard]] AppliedGradient<T> clipped(const SummedGradient<T>& gradient,
                                           Workers& workers) const;
  // Replaces the sum by the clipped mean gradient, and applies the transforms.
  [[nodiscard]] AppliedGradient<T> transformed(const SummedGradient<T>& gradient,
                                               const std::function<void()>& before_change,
                                               Workers& workers);
  // Returns the factor that shortens a gradient of that norm.
  [[nodiscard]] T shortening(const SummedGradient<T>& gradient) const;

  const TrainOptions& options_;
  TransformChain<T> transforms_;
};

extern template class GradientPreparation<float>;
extern template class GradientPreparation<double>;

}  // namespace rubato
