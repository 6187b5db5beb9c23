#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace rubato::detail {

/// The bytes that are read at once.
inline constexpr std::size_t kPieceOfText = 1 << 16;

/// Reads a text piece by piece, from a file, a pipe or a string, in lines or as a whole. It skips a
/// byte order mark and a first line such as "sep=;", which tells Excel the separator. Lines end
/// with "\n", "\r\n" or, if the beginning has neither, "\r".
class TextReader {
 public:
  /// Reads from `in`; `source` names the text in messages.
  TextReader(std::unique_ptr<std::istream> in, std::string source);

  /// Opens a file or pipe. Throws Error ("cannot read `what` PATH: ...; accepted: ...") for
  /// anything else.
  [[nodiscard]] static TextReader open(const std::filesystem::path& path, std::string_view what,
                                       std::string_view accepted);
  /// Reads a copy of `text`.
  [[nodiscard]] static TextReader of(std::string_view text, std::string source);

  [[nodiscard]] const std::string& source() const { return source_; }
  /// The separator in a first line such as "sep=;"; empty without such a line.
  [[nodiscard]] std::optional<char> separator() const { return separator_; }
  /// The next bytes, at most kPieceOfText, without consuming them.
  [[nodiscard]] std::string_view beginning() const {
    return std::string_view(buffer_).substr(begin_);
  }

  /// Reads the next line; false at the end of the text. Throws Error for a line of more than 16
  /// MiB, and if reading fails.
  bool next_line();
  /// The last line read, without its end; valid until the next line is read.
  [[nodiscard]] std::string_view line() const { return line_; }
  [[nodiscard]] std::int64_t line_number() const { return line_number_; }
  /// Reads all that is left. Before any other line was read, this includes the line that names the
  /// separator, so that its reader counts the same lines.
  [[nodiscard]] std::string rest();

  /// Throws Error about the last line read.
  [[noreturn]] void fail(std::string_view wrong, std::string_view accepted) const;

 private:
  // Reads another piece into the buffer; false at the end of the text.
  bool fill();

  std::unique_ptr<std::istream> in_;
  std::string source_;
  std::string buffer_;
  // Position in the buffer of the first byte that has not been consumed.
  std::size_t begin_ = 0;
  std::string_view line_;
  std::int64_t line_number_ = 0;
  char line_end_ = '\n';
  std::optional<char> separator_;
};

}  // namespace rubato::detail
