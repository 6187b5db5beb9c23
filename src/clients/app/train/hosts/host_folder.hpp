#pragma once

#include <filesystem>

namespace rubato::app {

/// A folder in that for temporary files, for the run of a host that may come to write the run
/// folder itself. It is removed with its owner.
class HostFolder {
 public:
  /// Throws OutputError where it cannot be made.
  HostFolder();
  ~HostFolder();
  HostFolder(const HostFolder&) = delete;
  HostFolder& operator=(const HostFolder&) = delete;

  /// For the run: it does not exist.
  [[nodiscard]] std::filesystem::path run() const { return path_ / "run"; }

  /// Removes those of processes that were killed.
  static void remove_leftovers() noexcept;

 private:
  std::filesystem::path path_;
};

}  // namespace rubato::app
