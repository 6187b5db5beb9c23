#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rubato::test {

/// What a program did.
struct ProgramResult {
  /// Its exit code; -1 when it did not exit by itself.
  int code = -1;
  std::string out;
  std::string err;
};

/// Runs `program` with `arguments` in `folder`, without input, and waits for its end.
[[nodiscard]] ProgramResult run_program(const std::filesystem::path& program,
                                        const std::vector<std::string>& arguments,
                                        const std::filesystem::path& folder = ".");

/// Runs the rubato of this build.
[[nodiscard]] ProgramResult rubato(const std::vector<std::string>& arguments,
                                   const std::filesystem::path& folder = ".");

}  // namespace rubato::test
