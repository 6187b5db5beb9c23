#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <rubato/core/error.hpp>
#include <rubato/report/run_folder.hpp>

#include "core/file.hpp"

namespace rubato {

namespace fs = std::filesystem;

namespace {

// The folder and those above it that are missing; the names of all reach the disk.
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
        fmt::format("{}: the run folder exists; accepted is a path that does not", path_.string()));
  }
  error = make_folders(path_);
  if (error) {
    throw Error(fmt::format("{}: cannot make the run folder: {}", path_.string(), error.message()));
  }
  lock();
}

RunFolder::RunFolder(fs::path path, Existing) : path_(std::move(path)) {
  std::error_code ignored;
  if (!fs::is_directory(path_, ignored)) {
    throw Error(fmt::format("{}: no such folder; accepted: the folder of a run", path_.string()));
  }
  lock();
}

RunFolder RunFolder::existing(fs::path path) {
  return {std::move(path), Existing{}};
}

RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

RunFolder::~RunFolder() {
  if (descriptor_ >= 0) close(descriptor_);
}

// The operating system gives the lock back, however the process ends.
void RunFolder::lock() {
  descriptor_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ >= 0 && flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(std::exchange(descriptor_, -1));
    throw Error(fmt::format("{}: another process works in this run folder", path_.string()));
  }
}

void RunFolder::write(std::string_view name, std::string_view content) const {
  std::error_code ignored;
  fs::create_directories(path_, ignored);
  write_file(file(name), content);
}

}  // namespace rubato
