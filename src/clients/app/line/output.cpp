#include "output.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/core/terminal/terminal.hpp"

namespace rubato::app {

namespace {

// The errno of the first write to stdout that failed; 0 if none has.
int first_error = 0;

extern "C" void let_the_write_fail(int signal_number) {
  static_cast<void>(signal_number);
}

}  // namespace

void print_out(std::string_view text) {
  errno = 0;
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written && first_error == 0) first_error = errno == 0 ? EIO : errno;
}

void print_text(std::string_view text) {
  print_out(fitted(text, output_width()));
}

LineWidth output_width() {
  return line_width(STDOUT_FILENO);
}

void print_error(std::string_view text) {
  redraw_error(fitted(printable(text), line_width(STDERR_FILENO)));
}

void redraw_error(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

std::string lost_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 && first_error == 0) first_error = errno;
  if (first_error == 0 && std::ferror(stdout) == 0) return {};
  return std::generic_category().message(first_error == 0 ? EIO : first_error);
}

void require_output() {
  const std::string why = lost_output();
  if (first_error == EPIPE) throw ReaderGone(why);
  if (!why.empty()) throw OutputError(fmt::format("cannot write the output: {}", why));
}

void write_below(const std::filesystem::path& folder, std::string_view file,
                 std::string_view content) {
  const std::filesystem::path whole = folder / file;
  // An error of the folder is reported by write_file().
  std::error_code ignored;
  std::filesystem::create_directories(whole.parent_path(), ignored);
  write_file(whole, content);
}

bool can_redraw(int descriptor) {
  if (isatty(descriptor) != 1) return false;
  const char* const terminal = std::getenv("TERM");
  return terminal != nullptr && *terminal != '\0' && std::string_view(terminal) != "dumb";
}

bool wants_colours() {
  const char* const none = std::getenv("NO_COLOR");
  return none == nullptr || *none == '\0';
}

void prepare_streams() {
  for (const int number : {SIGPIPE, SIGXFSZ}) {
    // A handler, unlike SIG_IGN, is not inherited by programs that this one starts.
    if (std::signal(number, let_the_write_fail) == SIG_IGN) std::signal(number, SIG_IGN);
  }
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The file is opened for reading only, so that printing to it fails and is reported.
    if (fcntl(descriptor, F_GETFD) < 0) static_cast<void>(open("/dev/null", O_RDONLY));
  }
}

}  // namespace rubato::app
