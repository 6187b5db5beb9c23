#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/parse.hpp>
#include <rubato/numbers/loss_scaler.hpp>

namespace rubato {

/// What training images go through before the model sees them, drawn anew in each epoch.
enum class AugmentationKind { shift, flip, crop, cutout };

inline constexpr std::array<Choice<AugmentationKind>, 4> kAugmentations{
    {{AugmentationKind::shift, "shift"},
     {AugmentationKind::flip, "flip"},
     {AugmentationKind::crop, "crop"},
     {AugmentationKind::cutout, "cutout"}}};

struct AugmentationOptions {
  AugmentationKind kind = AugmentationKind::shift;
  /// Of shift: how far at most; of crop: how wide the padding is; of cutout: the side of the
  /// square.
  std::int64_t pixels = 0;

  friend bool operator==(const AugmentationOptions&, const AugmentationOptions&) = default;
};

/// From "flip", "shift:pixels=2" and the like, several with '+' between them, in the order in which
/// they are done; empty text is none. Throws Error for what there is not.
[[nodiscard]] std::vector<AugmentationOptions> parse_augmentations(std::string_view text);

struct Strategy;  // base/spec.hpp
/// All of them, with their arguments.
[[nodiscard]] std::vector<Strategy> augmentations();

/// What becomes of a model's buffers (the running statistics of batch normalisation) in a step.
enum class BufferUse {
  /// Each minibatch begins with the buffers of before the step, and they move by what all
  /// minibatches make of them (BufferCombination): the same whoever computes which minibatch.
  combined,
  /// As with one process for each core: a core begins a step with the model's buffers, its
  /// minibatches go on one after the other from what the last one left, and those of core 0 are the
  /// model's afterwards. So PyTorch's DistributedDataParallel has it, which broadcasts the buffers
  /// of rank 0. The result depends on the number of cores, not on threads.
  local,
};

inline constexpr std::array<Choice<BufferUse>, 2> kBufferUses{
    {{BufferUse::combined, "combined"}, {BufferUse::local, "local"}}};

/// How often a checkpoint is written.
struct CheckpointInterval {
  enum class Unit { steps, epochs, seconds };

  /// At least 1.
  std::int64_t count = 60;
  Unit unit = Unit::seconds;

  friend bool operator==(const CheckpointInterval&, const CheckpointInterval&) = default;
};

inline constexpr std::array<Choice<CheckpointInterval::Unit>, 3> kCheckpointUnits{
    {{CheckpointInterval::Unit::steps, "steps"},
     {CheckpointInterval::Unit::epochs, "epochs"},
     {CheckpointInterval::Unit::seconds, "seconds"}}};

/// "100steps", "1epoch", "60 seconds"; empty for "never". Throws Error for anything else.
[[nodiscard]] std::optional<CheckpointInterval> parse_checkpoint_interval(std::string_view text);

/// Operators of libtorch that rubato computes itself, forward and backward, where it is faster
/// (docs/operators.md): of float32 tensors on the CPU. Anything else is libtorch's as ever.
///
/// Their bits do not depend on the CPU, nor on threads. Pooling has libtorch's bits; the others
/// differ from libtorch's by rounding.
struct ReplacedOperators {
  /// Convolution of images with few channels. Needs AVX2 and FMA, as does pooling.
  bool convolution = true;
  bool max_pool = true;
  /// In training.
  bool batch_norm = true;

  [[nodiscard]] static constexpr ReplacedOperators none() {
    return {.convolution = false, .max_pool = false, .batch_norm = false};
  }
  friend bool operator==(const ReplacedOperators&, const ReplacedOperators&) = default;
};

/// From `all`, `none`, or names with commas between them: convolution, max-pool, batch-norm. Throws
/// Error for other text.
[[nodiscard]] ReplacedOperators parse_replaced_operators(std::string_view text);
/// The text that gives it.
[[nodiscard]] std::string to_string(const ReplacedOperators& operators);

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

/// The precision that `spec` asks for (base/spec.hpp); precisions() has the arguments. Throws Error
/// for an unknown name, with the nearest, and for arguments that it does not take.
[[nodiscard]] PrecisionOptions parse_precision(std::string_view spec);
/// All of them.
[[nodiscard]] std::vector<Strategy> precisions();

/// What is measured on a test set besides the loss.
struct TestMetrics {
  /// Where targets are classes it is measured in any case; whether it was asked for.
  bool accuracy = false;
  /// Of so many outputs; 0 is none.
  std::int64_t top_k = 0;
  bool mse = false;
  bool perplexity = false;

  friend bool operator==(const TestMetrics&, const TestMetrics&) = default;
};

/// From "mse", "top-k:k=5" and the like, several with '+' between them; empty text is none. Throws
/// Error for what there is not.
[[nodiscard]] TestMetrics parse_test_metrics(std::string_view text);

/// All of them, with their arguments.
[[nodiscard]] std::vector<Strategy> test_metrics();

}  // namespace rubato
