#pragma once

#include <array>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/run_program.hpp"

namespace rubato::test {

/// A process of the rubato of this build on a terminal of its own, of 24 rows.
class TerminalProgram {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;

  TerminalProgram(unsigned short columns, const Words& arguments,
                  const std::filesystem::path& folder = ".", const Variables& variables = {}) {
    winsize size = size_of(columns);
    std::vector<std::string> words = (Words{RUBATO_PROGRAM} + arguments).all();
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    child_ = forkpty(&master_, nullptr, nullptr, &size);
    if (child_ != 0) return;
    setenv("TERM", "xterm", 1);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    if (chdir(folder.c_str()) == 0) execv(argv[0], argv.data());
    _exit(127);
  }
  ~TerminalProgram() {
    close(master_);
    if (child_ > 0) waitpid(child_, nullptr, 0);
  }
  TerminalProgram(const TerminalProgram&) = delete;
  TerminalProgram& operator=(const TerminalProgram&) = delete;

  [[nodiscard]] pid_t process() const { return child_; }
  /// All that it has sent until now.
  [[nodiscard]] const std::string& text() const { return text_; }
  /// Reads until `is_there` of all that it has sent, or it has ended, which answers false.
  bool read_until(const std::function<bool(std::string_view text)>& is_there) {
    std::array<char, 4096> bytes{};
    while (!is_there(text_)) {
      // The end of a terminal is an error.
      const ssize_t count = read(master_, bytes.data(), bytes.size());
      if (count <= 0) return false;
      text_.append(bytes.data(), static_cast<std::size_t>(count));
    }
    return true;
  }
  bool read_until(std::string_view text) {
    return read_until([text](std::string_view all) { return all.find(text) != all.npos; });
  }
  void resize(unsigned short columns) {
    const winsize size = size_of(columns);
    EXPECT_EQ(ioctl(master_, TIOCSWINSZ, &size), 0);
  }
  void type(std::string_view keys) {
    EXPECT_EQ(write(master_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  /// Closes the terminal.
  void hang_up() { close(std::exchange(master_, -1)); }
  /// Reads to its end. Its exit code, or the signal that ended it as a negative number.
  int finish() {
    read_until([](std::string_view) { return false; });
    int status = 0;
    waitpid(std::exchange(child_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  static winsize size_of(unsigned short columns) {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = columns;
    return size;
  }

  int master_ = -1;
  pid_t child_ = -1;
  std::string text_;
};

/// What the rubato of this build prints with `arguments` in `folder` on a terminal of so many
/// columns.
[[nodiscard]] inline std::string on_terminal(unsigned short columns, const Words& arguments,
                                             const std::filesystem::path& folder = ".",
                                             const TerminalProgram::Variables& variables = {}) {
  TerminalProgram program(columns, arguments, folder, variables);
  EXPECT_EQ(program.finish(), 0) << program.text();
  return program.text();
}

}  // namespace rubato::test
