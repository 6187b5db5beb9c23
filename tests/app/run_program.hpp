#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace rubato::test {

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

/// Runs `program` with `arguments` in `folder`, without input, and waits for its end.
[[nodiscard]] ProgramResult run_program(const std::filesystem::path& program,
                                        const std::vector<std::string>& arguments,
                                        const std::filesystem::path& folder = ".",
                                        const WhileRunning& during = {});

/// Runs the rubato of this build.
[[nodiscard]] ProgramResult rubato(const std::vector<std::string>& arguments,
                                   const std::filesystem::path& folder = ".",
                                   const WhileRunning& during = {});

}  // namespace rubato::test
