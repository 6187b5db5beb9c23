#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/state.hpp>

namespace rubato {

/// Whether a name, which contains no folder, is one that rubato gives to event files.
[[nodiscard]] bool is_event_file_name(std::string_view name);

/// The event files in `folder` that rubato has written, in the order of their names.
[[nodiscard]] std::vector<std::filesystem::path> event_files(const std::filesystem::path& folder);

/// The event files of one run: one for each process that has worked on it. TensorBoard reads them
/// in the order of their names, which is the order in which they were written.
class EventFolder {
 public:
  /// Creates the folder and those above it. Throws OutputError when that fails.
  explicit EventFolder(std::filesystem::path path);

  /// The path of a new file, whose name is greater than those of the others.
  [[nodiscard]] std::filesystem::path next();
  /// True until next() is called, or a state is loaded that names files.
  [[nodiscard]] bool empty() const { return names_.empty(); }

  /// Saves the names of the files, and that the last of them is `bytes` long. Loading throws Error
  /// when a file is missing or the last one is shorter than it was; it changes no file.
  void visit_state(StateVisitor& state, std::int64_t bytes);
  /// Restores the folder to the time when the loaded state was saved: truncates the last file, and
  /// removes later ones. Throws OutputError when the folder cannot be written.
  void go_back();
  /// Removes all event files that any process of rubato has written. Throws OutputError.
  void remove_all();

 private:
  void require_files() const;
  void remove_if_not_among(const std::vector<std::string>& names) const;

  std::filesystem::path path_;
  std::vector<std::string> names_;
  // The length of the last file in a loaded state.
  std::int64_t bytes_ = 0;
};

}  // namespace rubato
