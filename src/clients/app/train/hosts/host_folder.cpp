#include "host_folder.hpp"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/system/file.hpp"

namespace rubato::app {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "rubato-host-";

// Returns whether the folder belongs to a process that is gone: nobody works in it, and it is too
// old for its owner to be still starting.
bool is_left_over(const fs::path& folder) {
  constexpr std::chrono::minutes kBeginning{1};
  const auto age = fs::file_time_type::clock::now() - fs::last_write_time(folder);
  if (age < kBeginning || !folder.filename().string().starts_with(kPrefix)) return false;
  try {
    static_cast<void>(RunFolder::existing(folder / "run"));
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

HostFolder::HostFolder() {
  std::string name = (fs::temp_directory_path() / fmt::format("{}XXXXXX", kPrefix)).string();
  if (mkdtemp(name.data()) == nullptr) {
    throw OutputError(fmt::format("{}: cannot make the folder: {}", name,
                                  std::generic_category().message(errno)));
  }
  path_ = name;
}

HostFolder::~HostFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void HostFolder::remove_leftovers() noexcept {
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::temp_directory_path())) {
      if (is_left_over(entry.path())) fs::remove_all(entry.path());
    }
  } catch (const std::exception&) {
    // Another process has removed it, or it belongs to another user.
  }
}

}  // namespace rubato::app
