#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/core/system/file.hpp"
#include "base/core/text/printable.hpp"
#include "base/core/text/wrapped.hpp"

namespace rubato::app {

/// Prints to stdout, at once. What cannot be written (a closed pipe, a full disk) is remembered:
/// see lost_output().
void print_out(std::string_view text);
/// print_out() for people: on a terminal, lines that are too long for it are fitted().
void print_text(std::string_view text);
/// How long the lines on stdout may be.
[[nodiscard]] LineWidth output_width();
/// Prints to stderr what is printable(), as print_text() does to stdout. There is nobody to tell
/// where that fails.
void print_error(std::string_view text);
/// The same as it is, with what redraws a line of the terminal.
void redraw_error(std::string_view text);

/// Why something could not be written to stdout, in the operating system's words; empty where all
/// of it was.
[[nodiscard]] std::string lost_output();
/// stdout is a pipe that nobody reads any more.
class ReaderGone : public OutputError {
 public:
  using OutputError::OutputError;
};
/// Throws OutputError where something could not be written to stdout: ReaderGone where it was a
/// closed pipe, which is no news to whoever closed it.
void require_output();

/// Writes a file as a whole; folders on the way to it are made. Throws OutputError.
void write_below(const std::filesystem::path& folder, std::string_view file,
                 std::string_view content);

/// Whether a line on `descriptor` can be drawn over: a terminal, and not one that TERM calls dumb.
[[nodiscard]] bool can_redraw(int descriptor);
/// Whether there may be colours: not where NO_COLOR says anything (https://no-color.org).
[[nodiscard]] bool wants_colours();

/// At the start of a program: from then on a closed pipe and a limit on the size of files are
/// errors of the write that meets them, not the end of the process, and no file that is opened
/// later takes the number of a standard stream that was closed.
void prepare_streams();

}  // namespace rubato::app
