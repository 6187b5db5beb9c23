#pragma once

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rubato::test {

/// What the rubato of this build prints with `arguments` in `folder` on a terminal of so many
/// columns.
[[nodiscard]] inline std::string on_terminal(unsigned short columns,
                                             std::vector<std::string> arguments,
                                             const std::filesystem::path& folder = ".") {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = columns;
  std::string program = RUBATO_PROGRAM;
  std::vector<char*> argv{program.data()};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int master = -1;
  const pid_t child = forkpty(&master, nullptr, nullptr, &size);
  if (child == 0) {
    setenv("TERM", "xterm", 1);
    if (chdir(folder.c_str()) == 0) execv(program.c_str(), argv.data());
    _exit(127);
  }
  std::string text;
  std::array<char, 4096> bytes{};
  // The end of a terminal is an error.
  for (ssize_t count = 0; (count = read(master, bytes.data(), bytes.size())) > 0;) {
    text.append(bytes.data(), static_cast<std::size_t>(count));
  }
  close(master);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << text;
  return text;
}

}  // namespace rubato::test
