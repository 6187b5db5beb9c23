#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/gradient_transform.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/loop/workers.hpp>
#include <rubato/steps/plan.hpp>

#include "base/core/throw_error.hpp"

namespace rubato {

/// Calls `own.of_float` or `own.of_double`, for parameters of type T, and returns the pointer that
/// it makes, which is not null. Throws Error if that function is empty or returns null; `refusal`
/// begins the message: "reducer x is made for no".
template <class T, class Own, class... Arguments>
[[nodiscard]] auto make_typed(const Own& own, std::string_view refusal, Arguments&... arguments) {
  const auto& make = [&]() -> const auto& {
    if constexpr (std::is_same_v<T, float>) {
      return own.of_float;
    } else {
      return own.of_double;
    }
  }
  ();
  auto made = make ? make(arguments...) : nullptr;
  if (made == nullptr) {
    throw_error("{} parameters of type {}", refusal, name_of(element_type_of<T>()));
  }
  return made;
}

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
  GradientPreparation(const TrainOptions& options, TransformParts parts);

  /// Calls `before_change` before it changes the state of a transform. Throws whatever transforms
  /// throw.
  [[nodiscard]] AppliedGradient<T> prepare(const SummedGradient<T>& gradient,
                                           const std::function<void()>& before_change,
                                           Workers& workers);

  void visit_state(StateVisitor& state);

 private:
  struct Transform {
    std::string name;
    std::unique_ptr<GradientTransform<T>> transform;
  };

  // The optimizer clips during its update, which saves a pass.
  [[nodiscard]] AppliedGradient<T> clipped(const SummedGradient<T>& gradient,
                                           Workers& workers) const;
  // Replaces the sum by the clipped mean gradient, and applies the transforms.
  [[nodiscard]] AppliedGradient<T> transformed(const SummedGradient<T>& gradient,
                                               const std::function<void()>& before_change,
                                               Workers& workers);
  // Applies all transforms to `gradient`, whose stream has the seed of the training. Throws Error
  // if one makes a value infinite or NaN.
  void transform(StepGradient<T> gradient, Workers& workers);
  void clear_padding(std::span<T> values) const;
  // Returns the factor that shortens a gradient of that norm.
  [[nodiscard]] T shortening(const SummedGradient<T>& gradient) const;

  const TrainOptions& options_;
  TransformParts parts_;
  std::vector<Transform> transforms_;
};

extern template class GradientPreparation<float>;
extern template class GradientPreparation<double>;

}  // namespace rubato
