#pragma once

#include <chrono>
#include <filesystem>

namespace rubato::app {

/// Throws Error when `folder` exists, or when it cannot be made because what it would lie in is no
/// folder or may not be written to. Makes nothing.
void check_run_folder(const std::filesystem::path& folder);

/// runs/<UTC date and time>, for a run that starts at `now`; with -2, -3, ... behind it where that
/// exists already.
[[nodiscard]] std::filesystem::path default_run_folder(std::chrono::system_clock::time_point now);

}  // namespace rubato::app
