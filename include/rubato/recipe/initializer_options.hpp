#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <rubato/core/choice.hpp>

namespace rubato {

struct Strategy;  // core/family.hpp

enum class InitializerKind {
  /// What the model's own constructor does.
  standard,
  /// Glorot and Bengio 2010.
  xavier,
  /// He et al. 2015 ("Kaiming").
  msra,
  /// Saxe et al. 2014.
  orthogonal,
  normal,
  uniform,
  one,
  zero,
};

inline constexpr std::array<Choice<InitializerKind>, 8> kInitializers{
    {{InitializerKind::standard, "default"},
     {InitializerKind::xavier, "xavier"},
     {InitializerKind::msra, "msra"},
     {InitializerKind::orthogonal, "orthogonal"},
     {InitializerKind::normal, "normal"},
     {InitializerKind::uniform, "uniform"},
     {InitializerKind::one, "one"},
     {InitializerKind::zero, "zero"}}};

/// Which side of a layer the variance of msra is kept on.
enum class FanMode { in, out };

/// The initial values of the weights: the parameters of at least two dimensions. Under all kinds
/// but the default, parameters called "bias" are 0, and other vectors (the scales of
/// normalisation) stay as they are.
struct InitializerOptions {
  InitializerKind kind = InitializerKind::standard;
  /// Of xavier and msra: a normal distribution instead of a uniform one.
  bool normal = false;
  /// Of xavier and orthogonal, above 0.
  double gain = 1;
  /// Of msra: the slope of the leaky ReLU that follows; 0 is a ReLU.
  double slope = 0;
  /// Of msra.
  FanMode fan = FanMode::in;
  /// Of normal.
  double mean = 0;
  double deviation = 0.01;
  /// Of uniform, low < high.
  double low = -0.07;
  double high = 0.07;

  friend bool operator==(const InitializerOptions&, const InitializerOptions&) = default;
};

/// The initializer that `spec` asks for (core/spec.hpp); initializers() has the arguments. Throws
/// Error for an unknown name, with the nearest, and for arguments that it does not take.
[[nodiscard]] InitializerOptions parse_initializer(std::string_view spec);
/// All of them.
[[nodiscard]] std::vector<Strategy> initializers();

}  // namespace rubato
