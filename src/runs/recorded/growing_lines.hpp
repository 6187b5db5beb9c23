#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace rubato {

/// The lines of a file that another process writes: it may append, and cut off what it has written
/// to write it again, as a run does that goes on from a checkpoint.
class GrowingLines {
 public:
  explicit GrowingLines(std::filesystem::path file) : file_(std::move(file)) {}

  /// Hands over each line that has come since the last call, without its end. A last line without
  /// an end waits for it. Where lines that were handed over are not there any more, `begin_anew` is
  /// called, and all lines are handed over again. A file that is not there has no lines. Throws
  /// Error where it cannot be read.
  void read(const std::function<void()>& begin_anew,
            const std::function<void(std::string_view line)>& take);
  /// All lines are handed over again by the next read(), which does not call `begin_anew`.
  void rewind();
  /// Of the line that was handed over last, from 1.
  [[nodiscard]] std::int64_t line() const { return line_; }
  [[nodiscard]] const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
  // What was handed over: its length, and its last bytes, by which it is known again.
  std::int64_t bytes_ = 0;
  std::string last_bytes_;
  std::int64_t line_ = 0;
};

}  // namespace rubato
