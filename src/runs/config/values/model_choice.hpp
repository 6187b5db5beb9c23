#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

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

}  // namespace rubato
