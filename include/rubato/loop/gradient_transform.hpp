#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rubato/base/index.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/base/state.hpp>
#include <rubato/loop/optimizer.hpp>
#include <rubato/loop/workers.hpp>
#include <rubato/steps/random.hpp>

namespace rubato {

/// The parameters whose gradients a transform will change.
struct TransformParts {
  /// The layout of gradient and parameters in their flat arrays, and the group of each tensor.
  ParameterLayout layout;
  /// The parameter tensors in the order of the layout. The arrays outlive the transform.
  std::vector<TrainedArray> trained;
};

/// The gradient of a step, which a transform changes. Nothing in it depends on threads or cores.
template <class T>
struct StepGradient {
  /// The mean over the samples of the step, after clipping and the transforms before this one.
  /// Changed in place, in any way; the padding between tensors is set to 0 again.
  std::span<T> values;
  /// The parameters at which the gradient was computed.
  std::span<const T> parameters;
  /// The epoch in which the step begins.
  EpochIndex epoch{};
  StepIndex step{};
  /// The size of the step in samples, and in minibatches.
  std::int64_t batch_size = 0;
  std::int64_t minibatches = 0;
  /// The key for random numbers (NormalNumbers) of this step and this transform, which is
  /// identified by its name: no other transform and no minibatch draws the same numbers.
  StreamKey stream{};
};

/// Changes the gradient of a step between clipping and update.
///
/// Called by the training thread, once for each applied step, in order. The rule and
/// StepRecord::gradient_norm use the gradient before the transform; an optimizer that uses norms
/// (LARS) the gradient after it.
///
/// T is float or double.
template <class T>
class GradientTransform {
 public:
  GradientTransform() = default;
  GradientTransform(const GradientTransform&) = delete;
  GradientTransform& operator=(const GradientTransform&) = delete;
  virtual ~GradientTransform() = default;

  /// Changes gradient.values, as a function of the gradient and of the state that earlier steps
  /// left, to the same bits for every number of threads. Workers::for_each_range() divides an array
  /// by its size alone, so sums over its ranges in order are reproducible, too. An exception ends
  /// training without a state. A value that becomes infinite or NaN ends training with an Error
  /// that names the transform; the parameters are then those before the step.
  virtual void apply(const StepGradient<T>& gradient, Workers& workers) = 0;

  /// Visits what the transform remembers from step to step, which has a part of its own in the
  /// trainer's state. By default there is nothing.
  virtual void visit_state(StateVisitor& state) { static_cast<void>(state); }
};

/// Makes a user's own gradient transform, for parameters of either type, as a value.
struct OwnGradientTransform {
  /// Names the transform in messages and binds a state: transforms with the same name are taken to
  /// be the same, so the name has to say everything that changes the result ("noise 0.1"). One line
  /// without "/", unique within a trainer.
  std::string name{};
  std::function<std::unique_ptr<GradientTransform<float>>(const TransformParts& parts)> of_float{};
  std::function<std::unique_ptr<GradientTransform<double>>(const TransformParts& parts)>
      of_double{};

  [[nodiscard]] explicit operator bool() const { return of_float || of_double; }
};

namespace detail {

/// A transform that remembers nothing.
template <class T, class Function>
class FunctionTransform final : public GradientTransform<T> {
 public:
  explicit FunctionTransform(Function function) : function_(std::move(function)) {}
  void apply(const StepGradient<T>& gradient, Workers& workers) override {
    function_(gradient, workers);
  }

 private:
  Function function_;
};

}  // namespace detail

/// Makes a stateless transform: function(gradient, workers) replaces GradientTransform::apply() for
/// the types that it accepts (both if it is generic).
///
///     options.gradient_transforms = {rubato::function_transform(
///         "sign", [](const auto& gradient, rubato::Workers& workers) {
///           workers.for_each_range(gradient.values.size(), [&](std::size_t begin, std::size_t end)
///           {
///             for (std::size_t i = begin; i < end; ++i) {
///               const auto value = gradient.values[i];
///               if (value > 0) gradient.values[i] = 1;
///               if (value < 0) gradient.values[i] = -1;
///             }
///           });
///         })};
template <class Function>
[[nodiscard]] OwnGradientTransform function_transform(std::string name, Function function) {
  constexpr bool kOfFloat = std::invocable<Function&, const StepGradient<float>&, Workers&>;
  constexpr bool kOfDouble = std::invocable<Function&, const StepGradient<double>&, Workers&>;
  static_assert(kOfFloat || kOfDouble, "function(const StepGradient<T>&, Workers&)");
  OwnGradientTransform transform;
  transform.name = std::move(name);
  if constexpr (kOfFloat) {
    transform.of_float = [function](const TransformParts&) {
      return std::make_unique<detail::FunctionTransform<float, Function>>(function);
    };
  }
  if constexpr (kOfDouble) {
    transform.of_double = [function](const TransformParts&) {
      return std::make_unique<detail::FunctionTransform<double, Function>>(function);
    };
  }
  return transform;
}

/// Adds independent normal numbers of that standard deviation, above 0, to every value, as
/// differential privacy does after clipping (Abadi et al. 2016, algorithm 1). A guarantee for
/// single samples would need each sample's gradient clipped; clip_norm bounds only the mean of the
/// step.
[[nodiscard]] OwnGradientTransform gaussian_noise(double deviation);

/// The user's own transforms, by name.
using OwnTransforms = Additions<OwnGradientTransform>;
/// Returns the transform that `text` asks for: "noise:deviation=0.01", which is gaussian_noise(),
/// or one of the user's own. Throws Error for another name, suggesting the nearest, and for
/// arguments that the transform does not take.
[[nodiscard]] OwnGradientTransform make_transform(std::string_view text, const OwnTransforms& own);
/// The names of the built-in transforms, and the transforms with their arguments.
[[nodiscard]] std::vector<std::string_view> transform_names();
[[nodiscard]] std::vector<Strategy> transforms();

}  // namespace rubato
