#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <rubato/core/choice.hpp>

namespace rubato {

class Spec;

/// What lies between two layers.
enum class Activation {
  relu,
  tanh,
};
inline constexpr std::array<Choice<Activation>, 2> kActivations{
    {{Activation::relu, "relu"}, {Activation::tanh, "tanh"}}};

/// A multi-layer perceptron.
struct PerceptronOptions {
  /// The widths of the hidden layers, from the inputs on: at least one, each at least 1.
  std::vector<std::int64_t> hidden{128, 64};
  Activation activation = Activation::relu;

  friend bool operator==(const PerceptronOptions&, const PerceptronOptions&) = default;
};

/// "mlp", or "mlp:hidden=256/128/64,activation=tanh". Throws Error.
[[nodiscard]] PerceptronOptions parse_perceptron(std::string_view text);
/// The arguments alone, whatever the name is, and without Spec::finish().
[[nodiscard]] PerceptronOptions read_perceptron(Spec& spec);

/// Weights and biases of fully connected layers from `inputs` over those widths to `outputs`.
[[nodiscard]] std::int64_t dense_parameters(std::int64_t inputs,
                                            std::span<const std::int64_t> hidden,
                                            std::int64_t outputs);

}  // namespace rubato
