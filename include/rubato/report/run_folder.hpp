#pragma once

#include <filesystem>
#include <string_view>

namespace rubato {

/// The folder that holds all there is to know of a run. It is made, never reused.
///
///     config.toml    what reproduces the run
///     trace.csv      the trace, unless it is a constant or built in
///     metrics.jsonl  a line for each step and each epoch
///     summary.json   what it came to
///     best.pt        the model of the best epoch, where it was to be kept
///     weights.pt     the trained model, for Python's torch.load
class RunFolder {
 public:
  /// Makes the folder and those above it. Throws Error when it exists or cannot be made.
  explicit RunFolder(std::filesystem::path path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path file(std::string_view name) const { return path_ / name; }

  /// Writes a file as a whole: beside and then renamed into place, so that it is never seen half
  /// written. Throws Error when that fails.
  void write(std::string_view name, std::string_view content) const;

 private:
  std::filesystem::path path_;
};

}  // namespace rubato
