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

/// The gradient that an optimizer is to apply: `factor` times the sum, each element bounded to
/// [-clip, clip].
template <class T>
struct AppliedGradient {
  T factor = 1;
  T clip = std::numeric_limits<T>::infinity();
  /// The gradient in the sum, where it is no longer as it was measured.
  std::span<const T> changed{};
};

/// The sum of a step's gradients, and what is to become of it.
template <class T>
struct SummedGradient {
  /// To be changed in place.
  std::span<T> sum;
  std::span<const T> parameters;
  const StepPlan& step;
  EpochIndex epoch{};
  /// Of the mean; where gradients are clipped by their norm.
  std::optional<double> norm{};
  /// Whether the rule wants the mean applied, and not the sum.
  bool of_mean = true;
  /// Whether the optimizer goes by the norms of what it applies.
  bool norms_wanted = false;
};

/// Clips the gradient of a step and has it transformed, as the options say.
///
/// T is float or double.
template <class T>
class GradientPreparation {
 public:
  /// The options outlive it. Throws Error for a transform that makes nothing for this type.
  GradientPreparation(const TrainOptions& options, TransformParts parts)
      : options_(options), transforms_(options.gradient_transforms, std::move(parts)) {}

  /// Calls `before_change` before it changes what a transform remembers. Throws what transforms
  /// throw.
  [[nodiscard]] AppliedGradient<T> prepare(const SummedGradient<T>& gradient,
                                           const std::function<void()>& before_change,
                                           Workers& workers);

  void visit_state(StateVisitor& state) { transforms_.visit_state(state); }

 private:
  // Clipping rides along with the update.
  [[nodiscard]] AppliedGradient<T> clipped(const SummedGradient<T>& gradient,
                                           Workers& workers) const;
  // Puts the mean gradient, clipped, in the place of the sum, and has it transformed.
  [[nodiscard]] AppliedGradient<T> transformed(const SummedGradient<T>& gradient,
                                               const std::function<void()>& before_change,
                                               Workers& workers);
  // By how much a gradient of that norm is shortened.
  [[nodiscard]] T shortening(const SummedGradient<T>& gradient) const;

  const TrainOptions& options_;
  TransformChain<T> transforms_;
};

extern template class GradientPreparation<float>;
extern template class GradientPreparation<double>;

}  // namespace rubato
