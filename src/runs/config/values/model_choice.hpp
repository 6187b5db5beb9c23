#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/runs/run_configuration.hpp>

#include "loop/recipe/models.hpp"

namespace rubato {

/// The file in "script:FILE", which --model and --loss take; empty for any other text.
[[nodiscard]] std::optional<std::filesystem::path> script_file(const std::string& text);
/// Returns "script:FILE" for that file.
[[nodiscard]] std::string script_text(const std::filesystem::path& file);

/// The file of initial weights that --weights names: the file itself, or that of the run in the
/// folder. Throws Error if there is none.
[[nodiscard]] std::filesystem::path weights_file(const std::filesystem::path& file_or_run);

/// Throws Error if this user may not enter a folder of the path, so that nobody can say whether
/// there is such a file. `place` is put in front of the message ("--trace: ").
void require_visible(std::string_view place, const std::filesystem::path& path);

/// Throws Error unless the file of `option` ("model") is a regular file.
void require_option_file(std::string_view option, const std::filesystem::path& file,
                         std::string_view accepted);

/// The model that --model names, an entry of models() or kOwn, with its arguments.
/// Parsed<ModelChoice> throws Error for an unknown model, naming the nearest, and for arguments
/// that it does not have.
struct ModelChoice : ModelEntry {
  ModelOptions options{};
  /// The file of "script:FILE".
  std::optional<std::filesystem::path> script{};

  [[nodiscard]] bool is_own() const { return name == kOwn; }
  /// Samples in an epoch of a model that has its own; empty for all others.
  [[nodiscard]] std::optional<std::int64_t> own_samples() const;
};

/// Bytes of the model's gradient for data of this shape, from the table of models or from
/// --cluster. Throws Error if neither knows.
[[nodiscard]] std::int64_t known_gradient_bytes(const RunConfiguration& configuration,
                                                const DataShape& data = {});

/// The reason why only libtorch can compute a run, in the user's words: "--precision bf16"; empty
/// if Eigen can, too.
[[nodiscard]] std::optional<std::string> why_libtorch(const RunConfiguration& configuration);

/// The engine of a run, never Engine::automatic. Throws Error if no engine can do all that the run
/// asks for, or not the one that it names.
[[nodiscard]] Engine engine_of(const RunConfiguration& configuration);

class Spec;
struct LossChoice;

/// A loss, which training minimises, by name.
struct LossEntry {
  std::string_view name;
  /// A description in one line.
  std::string_view help;
  /// Whether its targets must be classes, which --label-smoothing can spread.
  bool of_classes = false;
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
