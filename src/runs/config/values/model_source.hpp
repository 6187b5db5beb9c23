#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

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

}  // namespace rubato
