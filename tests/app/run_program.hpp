#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace rubato::test {

/// The words of a command, as a list or as a text that a shell would divide at its blanks; quotes
/// are around whole words.
class Words {
 public:
  Words(std::initializer_list<std::string> words) : words_(words) {}
  Words(std::vector<std::string> words) : words_(std::move(words)) {}
  Words(const std::string& text);
  Words(const char* text) : Words(std::string(text)) {}

  [[nodiscard]] const std::vector<std::string>& all() const { return words_; }
  /// The words of both.
  friend Words operator+(Words words, const Words& more);

 private:
  std::vector<std::string> words_;
};

/// What a program did.
struct ProgramResult {
  /// Its exit code; -1 when it did not exit by itself.
  int code = -1;
  /// The signal that ended it; 0 where none did.
  int signal = 0;
  std::string out;
  std::string err;
};

/// What a test does while a program runs: gets its process, and what it has printed to stderr.
using WhileRunning = std::function<void(pid_t process, const std::filesystem::path& err)>;

/// Starts the program that `arguments` begin with, in `folder` and without input. Its outputs go to
/// files, which may be one. Returns its process, or 0, which fails the test.
[[nodiscard]] pid_t start_program(std::vector<std::string> arguments,
                                  const std::filesystem::path& folder,
                                  const std::filesystem::path& out,
                                  const std::filesystem::path& err);

/// Runs `program` with `arguments` in `folder`, without input, and waits for its end.
[[nodiscard]] ProgramResult run_program(const std::filesystem::path& program,
                                        const Words& arguments,
                                        const std::filesystem::path& folder = ".",
                                        const WhileRunning& during = {});

/// How often a text has a part.
[[nodiscard]] std::ptrdiff_t occurrences(const std::string& text, const std::string& part);

/// Runs the rubato of this build.
[[nodiscard]] ProgramResult rubato(const Words& arguments,
                                   const std::filesystem::path& folder = ".",
                                   const WhileRunning& during = {});

/// Runs `command` in a shell whose `$0` is the rubato of this build; where it ends with `exec "$0"
/// ...`, the exit code is the program's.
[[nodiscard]] ProgramResult shell(const std::string& command,
                                  const std::filesystem::path& folder = ".");

/// Fails the test unless rubato with `arguments` (as a shell reads them) exits with 24 and says
/// why, where its output goes to a full disk or to nowhere.
void expect_lost_output_is_said(const std::string& arguments);

}  // namespace rubato::test
