#pragma once

#include <filesystem>
#include <string>

namespace rubato {

/// The first line of a small file, such as those in /proc and /sys; empty if it cannot be read.
[[nodiscard]] std::string first_line(const std::filesystem::path& file);

/// The kernel's unique id of this boot of the machine, different from all others of all machines;
/// empty if unknown. /proc is read below `root`.
[[nodiscard]] std::string boot_id(const std::filesystem::path& root = "/");

/// The CPU's own name, or "unknown processor". /proc is read below `root`.
[[nodiscard]] std::string processor_name(const std::filesystem::path& root = "/");

}  // namespace rubato
