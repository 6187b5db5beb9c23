#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace rubato::detail {

/// A text that comes piece by piece, from a file, a pipe or a string, in lines or as a whole. A
/// byte-order mark before it is left out, and so is a first line such as "sep=;", by which Excel
/// knows what separates fields; lines end with "\n", "\r\n" or, where the beginning has no other,
/// "\r".
class TextReader {
 public:
  /// `source` names the text in messages.
  TextReader(std::unique_ptr<std::istream> in, std::string source);

  /// Opens a file or pipe. Throws Error ("cannot read `what` PATH: ...; accepted: ...") for what is
  /// neither.
  [[nodiscard]] static TextReader open(const std::filesystem::path& path, std::string_view what,
                                       std::string_view accepted);
  /// Keeps a copy of `text`.
  [[nodiscard]] static TextReader of(std::string_view text, std::string source);

  [[nodiscard]] const std::string& source() const { return source_; }
  /// The separator that a first line "sep=;" names.
  [[nodiscard]] std::optional<char> separator() const { return separator_; }
  /// What comes next, up to 64 KiB of it; nothing is taken.
  [[nodiscard]] std::string_view beginning() const {
    return std::string_view(buffer_).substr(begin_);
  }

  /// Takes the next line; false at the end of the text. Throws Error for a line of more than 16
  /// MiB, and when reading fails.
  bool next_line();
  /// The line that was taken last, without its end; valid until the next one is.
  [[nodiscard]] std::string_view line() const { return line_; }
  [[nodiscard]] std::int64_t line_number() const { return line_number_; }
  /// Takes all that there is left; before any line was taken, with the line that names the
  /// separator, so that whoever reads it counts the same lines.
  [[nodiscard]] std::string rest();

  /// Throws Error about the line that was taken last.
  [[noreturn]] void fail(std::string_view wrong, std::string_view accepted) const;

 private:
  // Reads another piece behind what is in the buffer; false where there is none.
  bool fill();

  std::unique_ptr<std::istream> in_;
  std::string source_;
  std::string buffer_;
  // Where in the buffer what was not taken begins.
  std::size_t begin_ = 0;
  std::string_view line_;
  std::int64_t line_number_ = 0;
  char line_end_ = '\n';
  std::optional<char> separator_;
};

}  // namespace rubato::detail
