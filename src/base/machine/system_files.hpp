#pragma once

#include <filesystem>
#include <string>

namespace rubato {

/// The first line of a small file, as those in /proc and /sys are; empty where it cannot be read.
[[nodiscard]] std::string first_line(const std::filesystem::path& file);

/// What tells this start of the machine from every other one of any machine, as the kernel gives
/// it; empty where it does not. `root` is where /proc is.
[[nodiscard]] std::string boot_id(const std::filesystem::path& root = "/");

/// As the CPU calls itself. `root` is where /proc is; "unknown processor" where it does not say.
[[nodiscard]] std::string processor_name(const std::filesystem::path& root = "/");

}  // namespace rubato
