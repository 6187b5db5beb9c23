#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/core/file.hpp"
#include "base/core/text/text.hpp"

namespace rubato::app {

/// Prints to stdout and flushes it. A failure (a closed pipe, a full disk) is remembered for
/// lost_output() and require_output().
void print_out(std::string_view text);
/// print_out() of text for people: on a terminal, lines that are too long for it are fitted().
void print_text(std::string_view text);
/// The width of lines on stdout.
[[nodiscard]] LineWidth output_width();
/// Prints to stderr, with unprintable characters replaced by printable() and long lines fitted(). A
/// failure is ignored, as it could be reported nowhere.
void print_error(std::string_view text);
/// Prints to stderr unchanged, for text that redraws a line of the terminal.
void redraw_error(std::string_view text);

/// The reason why a write to stdout failed, in the operating system's words; empty if none has.
[[nodiscard]] std::string lost_output();
/// The pipe that is stdout has been closed by its reader.
class ReaderGone : public OutputError {
 public:
  using OutputError::OutputError;
};
/// Throws OutputError if a write to stdout has failed. For a closed pipe that is ReaderGone, which
/// need not be reported, as the reader has closed it itself.
void require_output();

/// Writes a file atomically and makes the folders above it. Throws OutputError.
void write_below(const std::filesystem::path& folder, std::string_view file,
                 std::string_view content);

/// Returns whether a line on `descriptor` can be redrawn: it is a terminal, and TERM is neither
/// empty nor "dumb".
[[nodiscard]] bool can_redraw(int descriptor);
/// Returns whether colours are allowed: NO_COLOR is unset or empty (https://no-color.org).
[[nodiscard]] bool wants_colours();

/// Called at the start of a program. From then on, a closed pipe and a limit on file sizes make the
/// write fail instead of ending the process, and no file opened later gets the number of a standard
/// stream that was closed.
void prepare_streams();

}  // namespace rubato::app
