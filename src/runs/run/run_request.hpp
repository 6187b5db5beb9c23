#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "runs/config/options/given_options.hpp"

namespace rubato {

/// What a user asks for: a run, and where it is kept.
struct RunRequest {
  RunConfiguration run{};
  GivenOptions given{};
  /// The folder of a new run.
  std::optional<std::filesystem::path> out{};
  /// It may be there: the run in it goes on then, as with `resume`, but with the options of `run`.
  bool continues = false;
  /// The folder of a run to go on with, and the one of its checkpoints to go on from; empty for
  /// the newest good one.
  std::optional<std::filesystem::path> resume{};
  std::optional<std::filesystem::path> checkpoint{};

  friend bool operator==(const RunRequest&, const RunRequest&) = default;
};

/// Hears what a user should know: one line or more, without a line break at the end.
using Tell = std::function<void(const std::string& text)>;

/// Throws Error where a run is to go on in another folder, or in none.
void require_one_folder(const RunRequest& request);

/// Returns whether the run that a request continues (RunRequest::continues) has all of its epochs
/// and its results. Throws Error if it was trained with other options, naming them.
[[nodiscard]] bool is_complete(const RunRequest& request);

/// Where the run is kept: in the new folder, in the one to go on with, or nowhere. `tell` hears
/// which checkpoints were passed over. Throws Error where it cannot be.
[[nodiscard]] RunLocation location_of(const RunRequest& request, const Tell& tell);

/// Throws Error when `folder` exists, or when it cannot be made because what it would lie in is no
/// folder or may not be written to. Makes nothing.
void check_run_folder(const std::filesystem::path& folder);

/// runs/<UTC date and time>, for a run that starts at `now`; with -2, -3, ... behind it where that
/// exists already.
[[nodiscard]] std::filesystem::path default_run_folder(std::chrono::system_clock::time_point now);

/// Asks to go on with what `text` names: the folder of a run, or
/// RUN/checkpoints/step-N.safetensors. Looks at nothing but the name.
void ask_to_resume(RunRequest& request, const std::string& text);

}  // namespace rubato
