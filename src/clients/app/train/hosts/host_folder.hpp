#pragma once

#include <filesystem>

namespace rubato::app {

/// A temporary folder for the run of a host that may have to write the run folder later. Owns the
/// folder, and removes it when destroyed.
class HostFolder {
 public:
  /// Throws OutputError if the folder cannot be made.
  HostFolder();
  ~HostFolder();
  HostFolder(const HostFolder&) = delete;
  HostFolder& operator=(const HostFolder&) = delete;

  /// A name for the run's folder, which does not exist yet.
  [[nodiscard]] std::filesystem::path run() const { return path_ / "run"; }

  /// Removes the folders of processes that were killed.
  static void remove_leftovers() noexcept;

 private:
  std::filesystem::path path_;
};

}  // namespace rubato::app
