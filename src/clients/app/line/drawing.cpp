#include "drawing.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>

#include <sys/wait.h>
#include <unistd.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "base/core/file.hpp"
#include "base/core/process.hpp"
#include "base/core/terminal/drawn_lines.hpp"
#include "base/core/terminal/terminal.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "output.hpp"

namespace rubato::app {

namespace {

struct Close {
  void operator()(std::FILE* file) const { static_cast<void>(std::fclose(file)); }
};
using File = std::unique_ptr<std::FILE, Close>;

File scratch_file() {
  File file(std::tmpfile());
  if (!file) throw OutputError("no file can be made in " + std::string(P_tmpdir));
  return file;
}

constexpr std::array<Choice<PlotForm::Type>, 3> kPictures{
    {{PlotForm::Type::svg, ".svg"}, {PlotForm::Type::png, ".png"}, {PlotForm::Type::pdf, ".pdf"}}};

}  // namespace

PlotForm::Type picture_type(const std::filesystem::path& file) {
  for (const auto& [type, end] : kPictures) {
    if (file.extension() == end) return type;
  }
  throw_error("'{}' is not a picture; accepted: FILE.svg, FILE.png or FILE.pdf",
              short_line(file.string()));
}

std::string drawn_by_gnuplot(const std::string& script) {
  static_assert(kCannotStart == 127);
  // It would warn of a script in UTF-8 in the locale C.
  constexpr std::string_view kCommand =
      "command -v gnuplot >/dev/null || exit 127; "
      "export LC_ALL=C.UTF-8; exec gnuplot --default-settings";
  const File in = scratch_file();
  const File out = scratch_file();
  if (std::fwrite(script.data(), 1, script.size(), in.get()) != script.size() ||
      std::fflush(in.get()) != 0) {
    throw OutputError("no script can be written in " + std::string(P_tmpdir));
  }
  std::rewind(in.get());
  const std::array files{fileno(in.get()), fileno(out.get())};
  const pid_t child =
      start_child("/bin/sh", {"sh", "-c", std::string(kCommand)}, [&](pid_t parent) {
        tie_to(parent);
        dup2(files[0], STDIN_FILENO);
        dup2(files[1], STDOUT_FILENO);
      });
  const int status = child > 0 ? await_child(child) : -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kCannotStart) {
    throw Error(
        "gnuplot is not installed; plots need it: apt-get install gnuplot-nox (Debian's package)");
  }
  if (status != 0) throw OutputError("gnuplot failed");
  std::string drawn(static_cast<std::size_t>(std::max(lseek(files[1], 0, SEEK_END), off_t{0})), 0);
  std::rewind(out.get());
  drawn.resize(std::fread(drawn.data(), 1, drawn.size(), out.get()));
  return drawn;
}

PlotForm terminal_form(bool fits_terminal) {
  constexpr int kRows = 20;
  const bool terminal = fits_terminal && can_redraw(STDOUT_FILENO);
  const auto rows = static_cast<int>(terminal_rows(STDOUT_FILENO).value_or(kRows + 4));
  return {.columns = std::clamp(drawable_columns(STDOUT_FILENO), 40, 120),
          .rows = terminal ? std::clamp(rows - 4, kRows / 2, 2 * kRows) : kRows,
          .colours = terminal && wants_colours()};
}

// gnuplot fills its lines with blanks, and begins with a form feed.
void print_drawing(std::string_view drawn) {
  for (std::string_view line : split_at(drawn, '\n')) {
    if (line.starts_with('\f')) line.remove_prefix(1);
    const std::size_t end = line.find_last_not_of(' ');
    if (end != std::string_view::npos) print_out(std::string(line.substr(0, end + 1)) + '\n');
  }
}

}  // namespace rubato::app
