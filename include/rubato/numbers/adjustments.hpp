#pragma once

#include <array>
#include <optional>
#include <string>

#include <rubato/base/parse.hpp>

namespace rubato {

/// The memories of an optimizer whose half-lives count samples instead of steps: in a step of scale
/// S (RuleInput::scale()), which is as many samples as S steps of the reference batch,
///
///     momentum^S,    beta1^S,    beta2^S    instead of    momentum, beta1, beta2
///
/// and Lookahead's weights meet after k reference batches instead of k steps. For beta2, Marek et
/// al. 2025, arXiv 2507.07101. Each is chosen alone, because a momentum of 0.9^32 is none.
///
/// A velocity is a sum of gradients, so with momentum m a gradient moves the parameters by rate /
/// (1
/// - m) in the long run. To leave that to the rule, the rate is multiplied by (1 - m^S) / (1 - m).
/// Adam's mean is an average and needs no such factor.
struct MemoriesInSamples {
  bool momentum = false;
  bool beta1 = false;
  bool beta2 = false;
  bool lookahead = false;

  friend bool operator==(const MemoriesInSamples&, const MemoriesInSamples&) = default;
};

/// Parses "momentum=samples,beta2=samples" and the like; empty text is none. Throws Error for other
/// text.
[[nodiscard]] MemoriesInSamples parse_memories(const std::string& text);

/// How weight decay follows the batch size.
enum class DecayRule {
  /// It is multiplied by the rate alone, as the optimizer defines it.
  fixed,
  /// Its timescale B / (rate x decay), in samples, stays that of the reference batch: decay x S
  /// lr_ref / lr(B), which is sqrt(S) x decay for a rate that follows the root of S (Wang and
  /// Aitchison 2024, arXiv 2405.13698; Bergsma et al. 2025, arXiv 2505.13738).
  timescale,
};

inline constexpr std::array<Choice<DecayRule>, 2> kDecayRules{
    {{DecayRule::fixed, "fixed"}, {DecayRule::timescale, "timescale"}}};

/// The treatment of a memory of the optimizer when the batch size changes.
enum class Treatment {
  keep,
  /// A velocity or mean is multiplied by the ratio of the factors that the rule gives the rate, so
  /// that old gradients move the parameters as far as they did before: old / new in PyTorch's form
  /// of momentum and for Adam; in MXNet's form, whose velocity has the old rate in it, new / old,
  /// with which they move as they would in PyTorch's form (Goyal et al. 2017, section 3). The
  /// variance in Adam's mean squares is multiplied by the ratio of the batch sizes, old / new, as
  /// the variance of a mean gradient is (OptimizerAnswer::variance_factor).
  rescale,
  /// It is forgotten, and the correction of its bias begins anew.
  reset,
};

inline constexpr std::array<Choice<Treatment>, 3> kTreatments{
    {{Treatment::keep, "keep"}, {Treatment::rescale, "rescale"}, {Treatment::reset, "reset"}}};

/// The treatment of each memory when the batch size of a step differs from that of the step before.
struct BatchChange {
  /// The treatment of all memories that have none of their own.
  Treatment all = Treatment::keep;
  /// m: the velocity, or Adam's mean.
  std::optional<Treatment> mean{};
  /// v: Adam's mean squares.
  std::optional<Treatment> squares{};

  [[nodiscard]] Treatment of_mean() const { return mean.value_or(all); }
  [[nodiscard]] Treatment of_squares() const { return squares.value_or(all); }
  friend bool operator==(const BatchChange&, const BatchChange&) = default;
};

/// Parses "keep", "rescale", "reset", "m=rescale,v=reset" and the like; empty text is "keep".
/// Throws Error for other text.
[[nodiscard]] BatchChange parse_batch_change(const std::string& text);

/// The changes with the batch size that do not depend on the rule.
struct RuleAdjustments {
  MemoriesInSamples memories{};
  DecayRule decay = DecayRule::fixed;
  BatchChange on_batch_change{};

  friend bool operator==(const RuleAdjustments&, const RuleAdjustments&) = default;
};

}  // namespace rubato
