#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/system/file.hpp"

namespace rubato {

namespace fs = std::filesystem;

namespace {

// Creates the folder and its missing parents, and flushes their names to the disk.
std::error_code make_folders(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return {};
  const fs::path parent = parent_of(path);
  if (parent != path) error = make_folders(parent);
  if (!error) fs::create_directory(path, error);
  if (!error) flush_to_disk(parent);
  return error;
}

}  // namespace

RunFolder::RunFolder(fs::path path) : path_(std::move(path)) {
  std::error_code error;
  if (fs::exists(path_, error)) {
    throw Error(
        fmt::format("{}: the run folder exists; accepted: a path that does not", path_.string()));
  }
  error = make_folders(path_);
  if (error) {
    throw Error(fmt::format("{}: cannot make the run folder: {}", path_.string(), error.message()));
  }
  lock();
}

RunFolder::RunFolder(fs::path path, std::chrono::milliseconds patience, Existing)
    : path_(std::move(path)) {
  std::error_code ignored;
  if (!fs::is_directory(path_, ignored)) {
    throw Error(fmt::format("{}: no such folder; accepted: the folder of a run", path_.string()));
  }
  lock(patience);
}

RunFolder RunFolder::existing(fs::path path, std::chrono::milliseconds patience) {
  return {std::move(path), patience, Existing{}};
}

RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

RunFolder::~RunFolder() {
  if (descriptor_ >= 0) close(descriptor_);
}

// The operating system releases the lock when the process ends, in whatever way.
void RunFolder::lock(std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kPause{5};
  descriptor_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const auto end = std::chrono::steady_clock::now() + patience;
  while (descriptor_ >= 0 && flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    if (std::chrono::steady_clock::now() >= end) {
      close(std::exchange(descriptor_, -1));
      throw Error(fmt::format("{}: another process works in this run folder", path_.string()));
    }
    std::this_thread::sleep_for(kPause);
  }
}

void RunFolder::write(std::string_view name, std::string_view content) const {
  write(name, [content](const ByteSink& sink) { sink(content); });
}

void RunFolder::write(std::string_view name, const ByteSource& content) const {
  std::error_code ignored;
  fs::create_directories(path_, ignored);
  write_file(file(name), content);
}

}  // namespace rubato
