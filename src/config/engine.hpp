#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <rubato/config/run_configuration.hpp>

namespace rubato {

class Spec;

/// A model that users know by name, and who can compute it.
struct ModelEntry {
  std::string_view name;
  /// What it is, in a line.
  std::string_view help;
  bool in_eigen = false;
  bool in_libtorch = false;
  /// Whether it is trained on --data and tells classes apart; the others bring what they train on.
  bool classifies = true;
  /// Its parameters, for images of 28 x 28 in ten classes where it tells classes apart: what a
  /// simulation knows without the model.
  std::int64_t (*parameters)(const std::string& model) = nullptr;
  /// Reads its arguments; null where it takes none.
  void (*read)(Spec& spec) = nullptr;
};
/// All of them. The same for the whole life of the process.
[[nodiscard]] std::span<const ModelEntry> models();

/// The entry of a model with arguments, "mlp:hidden=64"; that of kOwn, which is not among models(),
/// has no parameters. Throws Error for an unknown one, naming
/// the nearest, and for arguments that it does not take.
[[nodiscard]] const ModelEntry& model_entry(const std::string& model);

/// Why only libtorch can compute a run, as the user said it: "--precision bf16"; empty where Eigen
/// can, too.
[[nodiscard]] std::optional<std::string> why_libtorch(const RunConfiguration& configuration);

/// Who computes a run: never Engine::automatic. Throws Error where nobody can do all that it asks
/// for, or not the engine that it names.
[[nodiscard]] Engine engine_of(const RunConfiguration& configuration);

}  // namespace rubato
