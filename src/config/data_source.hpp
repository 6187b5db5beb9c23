#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rubato {

struct Strategy;  // core/family.hpp

/// What --data accepts.
[[nodiscard]] std::vector<Strategy> data_sources();
[[nodiscard]] std::vector<std::string_view> data_names();

/// "KIND" or "KIND:ARGUMENT".
struct DataName {
  std::string kind{};
  std::string argument{};
};
[[nodiscard]] DataName data_name(const std::string& text);

/// Throws Error for text that names no data set: "digits" (built in), "mnist:DIR" and
/// kOwn do. Looks at
/// the file system only for a hint.
void require_data(const std::string& text);

/// The folder of the IDX files in "mnist:DIR"; empty for the built-in digits.
[[nodiscard]] std::optional<std::filesystem::path> mnist_folder(const std::string& data);

/// "mnist:DIR" for that folder.
[[nodiscard]] std::string mnist_data(const std::filesystem::path& folder);

}  // namespace rubato
