#include "moved_run.hpp"

#include <system_error>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/system/file.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = "moved.txt";

}  // namespace

void mark_moved(const fs::path& folder, const fs::path& to, std::int64_t steps) noexcept {
  try {
    write_file(folder / kMark, fmt::format("after {} steps the run continued in {}\n", steps,
                                           absolute_path(to).string()));
  } catch (const std::exception&) {
    // The folder may be another host's, or may have gone.
  }
}

void unmark_moved(const fs::path& folder) noexcept {
  std::error_code ignored;
  fs::remove(folder / kMark, ignored);
}

void require_not_moved(const fs::path& folder) {
  const fs::path mark = folder / kMark;
  std::error_code ignored;
  if (!fs::exists(mark, ignored)) return;
  std::string word = read_file(mark);
  while (word.ends_with('\n')) word.pop_back();
  throw Error(fmt::format("{}: {}; accepted: that folder, or this one without {}", folder.string(),
                          word, kMark));
}

}  // namespace rubato
