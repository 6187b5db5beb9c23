#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/core/choice.hpp>
#include <rubato/scaling/loss_scaler.hpp>

namespace rubato {

struct Strategy;  // core/family.hpp

/// What forward and backward compute in. Sums of gradients, updates and evaluations are in the
/// parameters' own type in any case.
enum class Precision {
  /// The parameters' type.
  full,
  /// bfloat16 where libtorch's autocast takes it to be safe.
  bf16,
  /// float16 storage of weights, activations and gradients, with float32 master weights and dynamic
  /// loss scaling: MXNet's multi-precision, emulated (docs/techniques.md says how).
  fp16,
};

inline constexpr std::array<Choice<Precision>, 3> kPrecisions{
    {{Precision::full, "full"}, {Precision::bf16, "bf16"}, {Precision::fp16, "fp16"}}};

struct PrecisionOptions {
  Precision precision = Precision::full;
  /// Of fp16.
  LossScaleOptions loss_scale{};

  friend bool operator==(const PrecisionOptions&, const PrecisionOptions&) = default;
};

/// The precision that `spec` asks for (core/spec.hpp); precisions() has the arguments. Throws Error
/// for an unknown name, with the nearest, and for arguments that it does not take.
[[nodiscard]] PrecisionOptions parse_precision(std::string_view spec);
/// All of them.
[[nodiscard]] std::vector<Strategy> precisions();

}  // namespace rubato
