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

/// What training minimises, by name.
struct LossEntry {
  std::string_view name;
  /// What it is, in a line.
  std::string_view help;
  /// Whether its targets have to be classes, which --label-smoothing can spread.
  bool of_classes = false;
  /// Reads its arguments; null where it takes none.
  void (*read)(Spec& spec, LossChoice& loss) = nullptr;
};
/// All of them. The same for the whole life of the process.
[[nodiscard]] std::span<const LossEntry> losses();

/// What --loss names: an entry, or nothing where it is not set. Parsed<LossChoice> throws Error for
/// an unknown one, naming the nearest.
struct LossChoice : LossEntry {
  /// The file of "script:FILE".
  std::optional<std::filesystem::path> script{};
  /// A loss of classes may leave out the class `ignore`, and weigh all of them; no weights mean
  /// that all weigh 1.
  std::optional<std::int64_t> ignore{};
  std::vector<double> class_weights{};
};

/// The loss of a run on classes as --loss has it: where it is not set, nll of built-in models,
/// whose outputs are log-probabilities, and cross-entropy of TorchScript and kOwn, for which it is
/// right whether their outputs are logits or log-probabilities. On real targets, which only the
/// data say, it is then mse.
[[nodiscard]] Parsed<LossChoice> loss_of(const RunConfiguration& configuration);

}  // namespace rubato
