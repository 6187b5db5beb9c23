#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <rubato/runs/run_configuration.hpp>

namespace rubato {

class Spec;
struct LossChoice;

/// A loss, which training minimises, by name.
struct LossEntry {
  std::string_view name;
  /// A description in one line.
  std::string_view help;
  /// True if its targets must be classes, which --label-smoothing can spread.
  bool of_classes = false;
  /// True if its targets may be probabilities of the classes instead, a row of real numbers each.
  bool of_probabilities = false;
  /// Reads its arguments; null if it has none.
  void (*read)(Spec& spec, LossChoice& loss) = nullptr;
};
/// All losses. The same for the whole life of the process.
[[nodiscard]] std::span<const LossEntry> losses();

/// The loss that --loss names; nothing if it is not set. Parsed<LossChoice> throws Error for an
/// unknown loss, naming the nearest.
struct LossChoice : LossEntry {
  /// The file of "script:FILE".
  std::optional<std::filesystem::path> script{};
  /// A loss of classes may leave out the class `ignore`, and weigh all of them; without weights
  /// each weighs 1.
  std::optional<std::int64_t> ignore{};
  std::vector<double> class_weights{};
};

/// The loss of a run on classes. If --loss is not set, it is nll for built-in models, whose outputs
/// are log-probabilities, and cross-entropy for TorchScript and kOwn, because it is right for
/// logits and for log-probabilities. On real targets, which can be seen only in the data, it is
/// then mse.
[[nodiscard]] Parsed<LossChoice> loss_of(const RunConfiguration& configuration);

}  // namespace rubato
