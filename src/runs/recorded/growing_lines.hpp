#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace rubato {

/// The lines of a file that another process writes. That process may append lines, and cut off the
/// end to write it again, as a run does that resumes from a checkpoint.
class GrowingLines {
 public:
  explicit GrowingLines(std::filesystem::path file) : file_(std::move(file)) {}

  /// Passes each line that was added since the last call to `take`, without its line end. A last
  /// line without an end is not passed until the end is written. If lines that were passed have
  /// been removed since, calls `begin_anew` and passes all lines again. A file that does not exist
  /// has no lines. Throws Error if it cannot be read.
  void read(const std::function<void()>& begin_anew,
            const std::function<void(std::string_view line)>& take);
  /// Makes the next read() pass all lines again, without calling `begin_anew`.
  void rewind();
  /// Number of the line that was passed last, from 1.
  [[nodiscard]] std::int64_t line() const { return line_; }
  [[nodiscard]] const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
  // Length of the part that was passed, and its last bytes, which tell whether it is unchanged.
  std::int64_t bytes_ = 0;
  std::string last_bytes_;
  std::int64_t line_ = 0;
};

}  // namespace rubato
