#include "transform_chain.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/mix.hpp"
#include "loop/train/checks/finite.hpp"
#include "loop/train/step/place.hpp"
#include "typed_maker.hpp"

namespace rubato {

namespace {

// The name of the transform's part in a state.
std::string part_of_transform(std::string_view name) {
  return fmt::format("transform/{}", name);
}

// Mixes the name into the seed, so that each name has its own.
std::uint64_t seed_by(std::string_view name, std::uint64_t seed) {
  std::uint64_t mix = mixed(seed);
  for (const char letter : name) mix = mixed(mix ^ static_cast<unsigned char>(letter));
  return mix;
}

}  // namespace

template <class T>
TransformChain<T>::TransformChain(std::span<const OwnGradientTransform> own, TransformParts parts)
    : parts_(std::move(parts)) {
  links_.reserve(own.size());
  for (const OwnGradientTransform& one : own) {
    const std::string refusal = fmt::format("gradient transform {} makes none for", one.name);
    links_.push_back({.name = one.name, .transform = make_typed<T>(one, refusal, parts_)});
  }
}

template <class T>
void TransformChain<T>::apply(StepGradient<T> gradient, Workers& workers) {
  const std::uint64_t seed = gradient.stream.seed;
  for (const Link& link : links_) {
    // -1 cannot be a minibatch: those count from 0.
    gradient.stream = {.seed = seed_by(link.name, seed),
                       .epoch = gradient.epoch.value(),
                       .step = gradient.step.value(),
                       .minibatch = -1};
    link.transform->apply(gradient, workers);
    clear_padding(gradient.values);
    if (is_finite(std::span<const T>(gradient.values), workers)) continue;
    throw Error(
        fmt::format("gradient transform {} made a value infinite or NaN at {}; accepted: "
                    "finite ones",
                    link.name, place_of(gradient.epoch, gradient.step)));
  }
}

template <class T>
void TransformChain<T>::clear_padding(std::span<T> values) const {
  std::size_t begin = 0;
  for (const TrainedArray& trained : parts_.trained) {
    begin += trained.array.size();
    const std::span<T> padding = values.subspan(begin, trained.end - begin);
    std::fill(padding.begin(), padding.end(), T{0});
    begin = trained.end;
  }
}

template <class T>
void TransformChain<T>::visit_state(StateVisitor& state) {
  for (const Link& link : links_) {
    StateVisitor part = state.part(part_of_transform(link.name));
    link.transform->visit_state(part);
  }
}

template class TransformChain<float>;
template class TransformChain<double>;

}  // namespace rubato
