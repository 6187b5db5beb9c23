#include "environment.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <sys/utsname.h>

#include "base/machine/system_files.hpp"

namespace rubato::lab {

namespace {

namespace fs = std::filesystem;

// Data and unified caches of the first processor, such as "L1 48K, L2 1024K, L3 32768K".
std::string caches() {
  std::string text;
  for (int i = 0; i < 8; ++i) {
    const fs::path folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}", i);
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored)) break;
    if (first_line(folder / "type") == "Instruction") continue;
    text += fmt::format("{}L{} {}", text.empty() ? "" : ", ", first_line(folder / "level"),
                        first_line(folder / "size"));
  }
  return text.empty() ? "unknown" : text;
}

std::string kernel() {
  utsname names{};
  if (uname(&names) != 0) return "unknown";
  return fmt::format("{} {}", names.sysname, names.release);
}

// The BLAS that Debian's alternatives provide to programs that train.
std::string blas() {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/etc/alternatives", ignored)) {
    if (!entry.path().filename().string().starts_with("libblas.so.3")) continue;
    return fs::read_symlink(entry.path(), ignored).string();
  }
  return "unknown";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> environment() {
#ifdef __clang__
  const std::string compiler = "Clang " __clang_version__;
#else
  const std::string compiler = "GCC " __VERSION__;
#endif
  return {{"processor", processor_name()},
          {"caches", caches()},
          {"hardware_threads", fmt::to_string(std::max(1U, std::thread::hardware_concurrency()))},
          {"kernel", kernel()},
          {"compiler", compiler},
          {"blas", blas()}};
}

}  // namespace rubato::lab
