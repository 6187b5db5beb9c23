#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "record_cells.hpp"

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
  /// Whether the last read() found a last line without an end.
  [[nodiscard]] bool has_rest() const { return has_rest_; }
  [[nodiscard]] const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
  // Length of the part that was passed, and its last bytes, which tell whether it is unchanged.
  std::int64_t bytes_ = 0;
  std::string last_bytes_;
  std::int64_t line_ = 0;
  bool has_rest_ = false;
};

/// A line of metrics.jsonl. Its values are read only when they are asked for: a step may have a
/// thousand lines of minibatches, which most readers skip.
class MetricsLine {
 public:
  /// `text` is the line that `lines` passes. Throws Error if it has no kind.
  MetricsLine(const GrowingLines& lines, std::string_view text);

  /// The name of its schema.
  [[nodiscard]] const std::string& kind() const { return kind_; }
  /// The values of the columns of its kind, as they are written. Throws Error, naming the column,
  /// if one has another type.
  [[nodiscard]] Cells cells() const;
  /// Its record, if it has this schema. Throws Error as cells() does.
  template <class Record>
  [[nodiscard]] Record record(const RecordSchema<Record>& schema) const {
    return checked([&] { return record_of(schema, cells_of(record_info(kind_).columns, text_)); });
  }

 private:
  // Adds the place to an Error.
  template <class Read>
  auto checked(const Read& read) const {
    try {
      return read();
    } catch (const Error& error) {
      reject(error.what());
    }
  }
  [[noreturn]] void reject(std::string_view why) const;

  const GrowingLines& lines_;
  std::string_view text_;
  std::string kind_;
};

/// Passes the lines of a metrics.jsonl as GrowingLines::read() does. Throws Error with file and
/// line for anything that no run has written.
void read_metrics(GrowingLines& lines, const std::function<void()>& begin_anew,
                  const std::function<void(const MetricsLine& line)>& take);
/// Passes the lines that are there now. Throws Error as above.
void read_metrics(GrowingLines& lines, const std::function<void(const MetricsLine& line)>& take);

/// Throws the Error for a folder without metrics, or with metrics that may not be read.
void require_metrics(const std::filesystem::path& file);

}  // namespace rubato
