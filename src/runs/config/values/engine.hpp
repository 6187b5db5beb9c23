#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include <rubato/loop/model_options.hpp>
#include <rubato/runs/run_configuration.hpp>

namespace rubato {

class Spec;

/// What of its data the size of a model depends on: by default the built-in digits.
struct DataShape {
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
  /// Classes, or real targets of a sample.
  std::int64_t outputs = 10;
  /// Where samples are sequences of `width` token ids, each of which has a class: ids are from 0 to
  /// below this. 0 of all other data.
  std::int64_t vocabulary = 0;
};

/// The arguments of a model; of one that takes none there are none.
using ModelOptions = std::variant<std::monostate, PerceptronOptions, ResidualOptions,
                                  TransformerOptions, QuadraticOptions>;

/// A model that users know by name, and who can compute it.
struct ModelEntry {
  std::string_view name;
  /// What it is, in a line.
  std::string_view help;
  bool in_eigen = false;
  bool in_libtorch = false;
  /// Whether it is trained on --data and tells classes apart; the others bring what they train on.
  bool classifies = true;
  /// How many parameters it has in training: what a simulation knows without the model. Null where
  /// nobody knows before the model is loaded.
  std::int64_t (*parameters)(const ModelOptions& options, const DataShape& data) = nullptr;
  /// Reads its arguments; null where it takes none.
  ModelOptions (*read)(Spec& spec) = nullptr;
};
/// All of them. The same for the whole life of the process.
[[nodiscard]] std::span<const ModelEntry> models();

/// What --model names: an entry, which is not among models() where it is kOwn, with arguments.
/// Parsed<ModelChoice> throws Error for an unknown one, naming the nearest, and for arguments that
/// it does not take.
struct ModelChoice : ModelEntry {
  ModelOptions options{};
  /// The file of "script:FILE".
  std::optional<std::filesystem::path> script{};

  [[nodiscard]] bool is_own() const { return name == kOwn; }
  /// Samples in an epoch of a model that brings what it trains on; empty of all others.
  [[nodiscard]] std::optional<std::int64_t> own_samples() const;
};

/// Bytes of the model's gradient for such data, as the table of models or --cluster says it. Throws
/// Error where neither does.
[[nodiscard]] std::int64_t known_gradient_bytes(const RunConfiguration& configuration,
                                                const DataShape& data = {});

/// Why only libtorch can compute a run, as the user said it: "--precision bf16"; empty where Eigen
/// can, too.
[[nodiscard]] std::optional<std::string> why_libtorch(const RunConfiguration& configuration);

/// Who computes a run: never Engine::automatic. Throws Error where nobody can do all that it asks
/// for, or not the engine that it names.
[[nodiscard]] Engine engine_of(const RunConfiguration& configuration);

}  // namespace rubato
