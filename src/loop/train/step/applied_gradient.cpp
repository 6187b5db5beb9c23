// The gradient of a step arrives as a sum over minibatches. Without transforms nothing is written:
// clipping by norm and the division by the number of minibatches are one factor, and the optimizer
// applies it and the bound of the elements in its own pass. Only an optimizer that measures the
// gradient that it applies gets it clipped beforehand. Transforms need the real values, so that
// with them the sum becomes the clipped mean, and they change it one after the other. Each has a
// random stream of its own, by its name, in which the number -1 stands where minibatches have
// theirs; the padding between arrays is set to 0 again after each, and a value that is not finite
// is an error.

#include "applied_gradient.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/spec.hpp>
#include <rubato/loop/gradient_transform.hpp>
#include <rubato/steps/random.hpp>

#include "base/core/portable_math.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "loop/train/checked_options.hpp"
#include "step_meter.hpp"
#include "step_part.hpp"

namespace rubato {

namespace {

struct TransformRow {
  std::string_view name;
  std::string_view help;
  OwnGradientTransform (*make)(Spec& spec);
};

constexpr std::array<TransformRow, 1> kTransforms{
    {{"noise", "adds normal numbers of that deviation, as differential privacy does after clipping",
      [](Spec& spec) {
        return gaussian_noise(spec.real("deviation", Required{"0.01"}, kPositive));
      }}}};

}  // namespace

OwnGradientTransform gaussian_noise(double deviation) {
  return function_transform(
      fmt::format("noise {}", deviation), [deviation](const auto& gradient, Workers& workers) {
        using T = typename std::decay_t<decltype(gradient.values)>::value_type;
        const NormalNumbers normal(gradient.stream);
        workers.for_each_range(gradient.values.size(), [&](std::size_t begin, std::size_t end) {
          for (std::size_t i = begin; i < end; ++i) {
            gradient.values[i] += static_cast<T>(deviation * normal[i]);
          }
        });
      });
}

OwnGradientTransform make_transform(std::string_view text, const OwnTransforms& own) {
  if (auto made = own.make(text)) return *std::move(made);
  Spec spec(text);
  OwnGradientTransform transform =
      find_row("gradient transform", spec.name(), kTransforms).make(spec);
  spec.finish();
  return transform;
}

std::vector<std::string_view> transform_names() {
  return row_names(kTransforms);
}

std::vector<Strategy> transforms() {
  return strategies_of(
      kTransforms, [](const TransformRow& row, Spec& spec) { static_cast<void>(row.make(spec)); });
}

namespace {

// Mixes the name into the seed, so that each name has its own.
std::uint64_t seed_by(std::string_view name, std::uint64_t seed) {
  std::uint64_t mix = mixed(seed);
  for (const char letter : name) mix = mixed(mix ^ static_cast<unsigned char>(letter));
  return mix;
}

}  // namespace

template <class T>
GradientPreparation<T>::GradientPreparation(const TrainOptions& options, TransformParts parts)
    : options_(options), parts_(std::move(parts)) {
  for (const OwnGradientTransform& one : options.gradient_transforms) {
    const std::string refusal = fmt::format("gradient transform {} makes none for", one.name);
    transforms_.push_back({.name = one.name, .transform = make_typed<T>(one, refusal, parts_)});
  }
}

template <class T>
void GradientPreparation<T>::transform(StepGradient<T> gradient, Workers& workers) {
  const std::uint64_t seed = gradient.stream.seed;
  for (const Transform& one : transforms_) {
    // -1 cannot be a minibatch: those count from 0.
    gradient.stream = {.seed = seed_by(one.name, seed),
                       .epoch = gradient.epoch.value(),
                       .step = gradient.step.value(),
                       .minibatch = -1};
    one.transform->apply(gradient, workers);
    clear_padding(gradient.values);
    if (is_finite(std::span<const T>(gradient.values), workers)) continue;
    throw_error("gradient transform {} made a value infinite or NaN at {}; accepted: finite ones",
                one.name, place_of(gradient.epoch, gradient.step));
  }
}

template <class T>
void GradientPreparation<T>::clear_padding(std::span<T> values) const {
  std::size_t begin = 0;
  for (const TrainedArray& trained : parts_.trained) {
    begin += trained.array.size();
    const std::span<T> padding = values.subspan(begin, trained.end - begin);
    std::fill(padding.begin(), padding.end(), T{0});
    begin = trained.end;
  }
}

template <class T>
void GradientPreparation<T>::visit_state(StateVisitor& state) {
  for (const Transform& one : transforms_) {
    StateVisitor part = state.part(fmt::format("transform/{}", one.name));
    if (!state.forks() || !part.has_none()) one.transform->visit_state(part);
  }
}

namespace {

// Bounds every element of factor * gradient, in a separate pass.
template <class T>
void scale_and_clip(std::span<T> gradient, T factor, T clip, Workers& workers) {
  workers.for_each_range(gradient.size(), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      gradient[i] = std::clamp(gradient[i] * factor, -clip, clip);
    }
  });
}

}  // namespace

template <class T>
AppliedGradient<T> GradientPreparation<T>::prepare(const SummedGradient<T>& gradient,
                                                   const std::function<void()>& before_change,
                                                   Workers& workers) {
  if (transforms_.empty()) return clipped(gradient, workers);
  return transformed(gradient, before_change, workers);
}

template <class T>
AppliedGradient<T> GradientPreparation<T>::clipped(const SummedGradient<T>& gradient,
                                                   Workers& workers) const {
  const auto size = static_cast<T>(gradient.step.size_in_minibatches(options_.minibatch_size));
  AppliedGradient<T> applied{.factor = gradient.of_mean ? T{1} / size : T{1}};
  applied.factor *= shortening(gradient);
  if (options_.clip_value) {
    applied.clip = static_cast<T>(*options_.clip_value);
    const T of_sum = applied.clip * size;
    if (!gradient.of_mean) applied.clip = of_sum;
    // An optimizer that uses the norms of the gradient needs it clipped beforehand.
    if (gradient.norms_wanted) {
      scale_and_clip(gradient.sum, T{1}, of_sum, workers);
      applied.changed = gradient.sum;
    }
  }
  return applied;
}

template <class T>
AppliedGradient<T> GradientPreparation<T>::transformed(const SummedGradient<T>& gradient,
                                                       const std::function<void()>& before_change,
                                                       Workers& workers) {
  const auto size = static_cast<T>(gradient.step.size_in_minibatches(options_.minibatch_size));
  const T factor = T{1} / size * shortening(gradient);
  const T clip = options_.clip_value ? static_cast<T>(*options_.clip_value)
                                     : std::numeric_limits<T>::infinity();
  scale_and_clip(gradient.sum, factor, clip, workers);
  // The transforms change their state from here on.
  before_change();
  transform({.values = gradient.sum,
             .parameters = gradient.parameters,
             .epoch = gradient.epoch,
             .step = gradient.step.index,
             .batch_size = gradient.step.batch_size,
             .minibatches = gradient.step.minibatches,
             .stream = {.seed = options_.seed}},
            workers);
  return {.factor = gradient.of_mean ? T{1} : size, .changed = gradient.sum};
}

// The factor equals that of torch's clip_grad_norm_.
template <class T>
T GradientPreparation<T>::shortening(const SummedGradient<T>& gradient) const {
  if (!options_.clip_norm) return 1;
  constexpr double kTiny = 1e-6;
  return static_cast<T>(std::min(1.0, *options_.clip_norm / (*gradient.norm + kTiny)));
}

template class GradientPreparation<float>;
template class GradientPreparation<double>;

namespace {

// Clipping by norm multiplies the gradients of all minibatches alike. Nothing else that changes
// their mean can be done to their squares.
constexpr const char* kSquares = "the squares of minibatches' gradients are known as a sum";
constexpr std::string_view kForSquares = "clipping by norm, or second-moment=mean";

}  // namespace

StepPart preparation_part() {
  return {.prefix = "transform",
          .bound =
              [](const TrainOptions& options) {
                const auto or_none = [](const std::optional<double>& bound) {
                  return bound ? fmt::to_string(*bound) : std::string("none");
                };
                const auto names =
                    vector_of(options.gradient_transforms, &OwnGradientTransform::name);
                return std::vector<BoundValue>{
                    {"clip_norm", or_none(options.clip_norm), OnFork::free},
                    {"clip_value", or_none(options.clip_value), OnFork::free},
                    {"gradient_transforms", fmt::to_string(fmt::join(names, ", ")), OnFork::free}};
              },
          .check =
              [](const TrainOptions& options) {
                const auto require = [](std::string_view what, std::optional<double> bound) {
                  if (!bound || *bound > 0) return;
                  throw_error("clipping to {} {}: accepted are values above 0", what, *bound);
                };
                require("norm", options.clip_norm);
                require("value", options.clip_value);
              },
          .conflicts = {{.choice = "clip_value",
                         .why = [](const StepChoices& step) -> std::string {
                           const bool both = step.options.clip_norm && step.options.clip_value;
                           return both ? "gradients are clipped by their norm already" : "";
                         },
                         .accepted = "one of them"},
                        {.choice = "clip_value",
                         .why = [](const StepChoices& step) -> std::string {
                           return step.squares && step.options.clip_value ? kSquares : "";
                         },
                         .accepted = kForSquares},
                        {.choice = "transform",
                         .why = [](const StepChoices& step) -> std::string {
                           const bool any = !step.options.gradient_transforms.empty();
                           return step.squares && any ? kSquares : "";
                         },
                         .accepted = kForSquares}},
          .columns =
              [] {
                return std::vector<RecordColumn<StepRecord>>{
                    {{.name = "gradient_norm",
                      .help = "norm of the mean gradient before it was clipped, where something "
                              "asks for it",
                      .tag = "train/gradient_norm",
                      .figure = {kRateSection, "Gradient norm"}},
                     &StepRecord::gradient_norm}};
              },
          .columns_after = "applied"};
}

}  // namespace rubato
