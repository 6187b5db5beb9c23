#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rubato::test {

/// Sees every fsync() and rename() of the program while it lives, in the order in which files reach
/// the disk. For a program that links rubato_file_calls, which wraps these calls; there is one at a
/// time, and calls come from one thread.
class FileCalls {
 public:
  /// Names what is in `folder` relative to it, and the folder itself ".".
  explicit FileCalls(const std::filesystem::path& folder);
  ~FileCalls();
  FileCalls(const FileCalls&) = delete;
  FileCalls& operator=(const FileCalls&) = delete;

  /// The folder as the kernel names it.
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  /// "fsync FILE" and "rename FROM TO".
  [[nodiscard]] const std::vector<std::string>& log() const { return log_; }
  void clear() { log_.clear(); }
  /// From now on this call fails, as on a disk that is broken.
  void fail(std::string call) { failing_ = std::move(call); }
  /// Ends the process with code 9 instead of its call number `count`, counted from 0: for a child
  /// process.
  void exit_at(std::size_t count) { exit_at_ = count; }

  /// Of the wrapped calls: 0, or -1 with errno where it is to fail.
  [[nodiscard]] int note_fsync(int descriptor);
  [[nodiscard]] int note_rename(const char* from, const char* to);

 private:
  [[nodiscard]] std::string shown(const std::filesystem::path& path) const;
  [[nodiscard]] int note(std::string call);

  std::filesystem::path folder_;
  std::vector<std::string> log_;
  std::string failing_;
  std::optional<std::size_t> exit_at_;
};

}  // namespace rubato::test
