#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace rubato::app {

/// Throws Error when `folder` exists, or when it cannot be made because what it would lie in is no
/// folder or may not be written to. Makes nothing.
void check_run_folder(const std::filesystem::path& folder);

/// runs/<UTC date and time>, for a run that starts at `now`; with -2, -3, ... behind it where that
/// exists already.
[[nodiscard]] std::filesystem::path default_run_folder(std::chrono::system_clock::time_point now);

/// What --resume names: a run, and one of its checkpoints where it is to go on from that.
struct ResumePoint {
  std::filesystem::path run;
  std::optional<std::filesystem::path> checkpoint;
};
/// `text` is a run's folder or RUN/checkpoints/step-N.safetensors. Looks at nothing but the name.
[[nodiscard]] ResumePoint resume_point(const std::string& text);

}  // namespace rubato::app
