#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rubato/core/family.hpp>
#include <rubato/core/index.hpp>
#include <rubato/optim/flat_optimizer.hpp>
#include <rubato/plan/stream_key.hpp>
#include <rubato/runtime/workers.hpp>
#include <rubato/state/state.hpp>
#include <rubato/train/trained_array.hpp>

namespace rubato {

/// What a gradient transform is made for.
struct TransformParts {
  /// How gradient and parameters lie in their flat arrays, and of which group each tensor is.
  ParameterLayout layout;
  /// In the order of the layout. The arrays outlive the transform.
  std::vector<TrainedArray> trained;
};

/// The gradient of a step, to be changed: nothing in it depends on threads or cores.
template <class T>
struct StepGradient {
  /// The mean over the samples of the step, after clipping and the transforms before this one.
  /// To be changed in place, in any way; what lies between tensors (the padding) becomes 0 again.
  std::span<T> values;
  /// Those that the gradient was taken at.
  std::span<const T> parameters;
  /// In which the step begins.
  EpochIndex epoch{};
  StepIndex step{};
  /// In samples, and in minibatches.
  std::int64_t batch_size = 0;
  std::int64_t minibatches = 0;
  /// For random numbers (NormalNumbers) of this step and this transform, by its name: no other
  /// transform and no minibatch draws the same.
  StreamKey stream{};
};

/// What is done to the gradient of a step between its clipping and its update.
///
/// Called by the thread that trains, once for each step that is applied, in their order. The rule
/// and StepRecord::gradient_norm go by the gradient before it; an optimizer that goes by norms
/// (LARS) by the one after it.
///
/// T is float or double.
template <class T>
class GradientTransform {
 public:
  GradientTransform() = default;
  GradientTransform(const GradientTransform&) = delete;
  GradientTransform& operator=(const GradientTransform&) = delete;
  virtual ~GradientTransform() = default;

  /// Changes gradient.values: a function of the gradient and of what the steps before have left
  /// behind, the same bits for every number of threads. Workers::for_each_range() cuts an array by
  /// its size alone; so what is summed range by range, in their order, is the same, too. An
  /// exception ends training, and there is no state then. So does a value that becomes infinite or
  /// NaN, as an Error that names the transform; the parameters are then as before the step.
  virtual void apply(const StepGradient<T>& gradient, Workers& workers) = 0;

  /// Puts what it remembers from step to step into a state of its own, which is a part of the
  /// trainer's; load() goes on from there, and throws Error where it cannot.
  virtual void save(State& state) const { static_cast<void>(state); }
  virtual void load(const State& state) { static_cast<void>(state); }
};

/// Makes a gradient transform of the user's own, for parameters of either type, as a value.
struct OwnGradientTransform {
  /// Names it in messages, and binds a state: transforms of one name are taken for the same, so
  /// that what changes the result belongs into it ("noise 0.1"). One line without "/". The
  /// transforms of a trainer have different names.
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

/// A transform that remembers nothing: function(gradient, workers), which is called in the place of
/// GradientTransform::apply() for the types that it takes, both where it is generic.
///
///     options.gradient_transforms = {rubato::gradient_transform(
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
[[nodiscard]] OwnGradientTransform gradient_transform(std::string name, Function function) {
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
/// differential privacy does behind clipping (Abadi et al. 2016, algorithm 1); a guarantee for
/// single samples needs each sample's gradient clipped, and clip_norm bounds the mean of the step.
[[nodiscard]] OwnGradientTransform gaussian_noise(double deviation);

/// Transforms of the user's own, by name.
using OwnTransforms = Additions<OwnGradientTransform>;
/// The transform that `text` asks for: "noise:deviation=0.01", which is gaussian_noise(), or one of
/// the user's own. Throws Error for another name, with the nearest, and for arguments that it does
/// not take.
[[nodiscard]] OwnGradientTransform make_transform(std::string_view text, const OwnTransforms& own);
/// The built-in names, and the same with their arguments.
[[nodiscard]] std::vector<std::string_view> transform_names();
[[nodiscard]] std::vector<Strategy> transforms();

}  // namespace rubato
