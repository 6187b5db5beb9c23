#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/parse.hpp>
#include <rubato/numbers/loss_scaler.hpp>

// Options of a training that only libtorch has: Eigen trains with the default of each.

namespace rubato {

struct Strategy;  // base/spec.hpp

/// The random changes of training images before the model sees them, drawn anew in each epoch.
enum class AugmentationKind { shift, flip, crop, cutout };

inline constexpr std::array<Choice<AugmentationKind>, 4> kAugmentations{
    {{AugmentationKind::shift, "shift"},
     {AugmentationKind::flip, "flip"},
     {AugmentationKind::crop, "crop"},
     {AugmentationKind::cutout, "cutout"}}};

struct AugmentationOptions {
  AugmentationKind kind = AugmentationKind::shift;
  /// The largest shift, the width of crop's padding, or the side of cutout's square.
  std::int64_t pixels = 0;

  friend bool operator==(const AugmentationOptions&, const AugmentationOptions&) = default;
};

/// Parses "flip", "shift:pixels=2" and the like, joined by '+' in the order in which they are
/// applied; empty text is none. Throws Error for other text.
[[nodiscard]] std::vector<AugmentationOptions> parse_augmentations(std::string_view text);

/// All augmentations, with their arguments.
[[nodiscard]] std::vector<Strategy> augmentations();

/// How a step treats a model's buffers (the running statistics of batch normalisation).
enum class BufferUse {
  /// Each minibatch begins with the buffers as they were before the step, which then combines the
  /// changes of all minibatches (BufferCombination): the same whoever computes which minibatch.
  combined,
  /// Buffers behave as with one process for each core: a core begins a step with the model's
  /// buffers, each of its minibatches continues from the buffers that the last one left, and those
  /// of core 0 become the model's. PyTorch's DistributedDataParallel does the same when it
  /// broadcasts the buffers of rank 0. The result depends on the number of cores, not on threads.
  local,
};

inline constexpr std::array<Choice<BufferUse>, 2> kBufferUses{
    {{BufferUse::combined, "combined"}, {BufferUse::local, "local"}}};

/// Operators of libtorch that rubato computes itself, forward and backward, because it is faster
/// (docs/operators.md): on float32 tensors on the CPU. All others remain libtorch's.
///
/// Their bits do not depend on the CPU (of attention: on CPUs with FMA), nor on threads. Pooling
/// has libtorch's bits; the others differ from libtorch's by rounding.
struct ReplacedOperators {
  /// Convolution of images with few channels. Needs AVX2 and FMA, as does pooling.
  bool convolution = true;
  bool max_pool = true;
  /// Batch normalisation in training.
  bool batch_norm = true;
  /// Attention of the built-in transformer.
  bool attention = true;

  [[nodiscard]] static constexpr ReplacedOperators none() {
    return {.convolution = false, .max_pool = false, .batch_norm = false, .attention = false};
  }
  friend bool operator==(const ReplacedOperators&, const ReplacedOperators&) = default;
};

/// Parses `all`, `none`, or names separated by commas: convolution, max-pool, batch-norm,
/// attention. Throws Error for other text.
[[nodiscard]] ReplacedOperators parse_replaced_operators(std::string_view text);
/// Returns the text that parses to `operators`.
[[nodiscard]] std::string to_string(const ReplacedOperators& operators);

/// The number format of forward and backward. Sums of gradients, updates and evaluations always
/// have the parameters' own type.
enum class Precision {
  /// The parameters' type.
  full,
  /// bfloat16 where libtorch's autocast considers it safe.
  bf16,
  /// float16 storage of weights, activations and gradients, with float32 master weights and dynamic
  /// loss scaling: MXNet's multi-precision, emulated (docs/techniques.md explains how).
  fp16,
};

inline constexpr std::array<Choice<Precision>, 3> kPrecisions{
    {{Precision::full, "full"}, {Precision::bf16, "bf16"}, {Precision::fp16, "fp16"}}};

struct PrecisionOptions {
  Precision precision = Precision::full;
  /// Options of fp16's dynamic loss scaling.
  LossScaleOptions loss_scale{};

  friend bool operator==(const PrecisionOptions&, const PrecisionOptions&) = default;
};

/// Returns the precision that `spec` asks for (base/spec.hpp); precisions() lists the arguments.
/// Throws Error for an unknown name, suggesting the nearest, and for arguments that the precision
/// does not take.
[[nodiscard]] PrecisionOptions parse_precision(std::string_view spec);
/// All precisions, with their arguments.
[[nodiscard]] std::vector<Strategy> precisions();

}  // namespace rubato
