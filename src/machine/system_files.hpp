#pragma once

#include <filesystem>
#include <string>

namespace rubato {

/// The first line of a small file, as those in /proc and /sys are; empty where it cannot be read.
[[nodiscard]] std::string first_line(const std::filesystem::path& file);

/// As the CPU calls itself. `root` is where /proc is; "unknown processor" where it does not say.
[[nodiscard]] std::string processor_name(const std::filesystem::path& root = "/");

}  // namespace rubato
