// Files are written and flushed through POSIX descriptors, because streams offer neither fsync()
// nor a reliable cause of a failure. An atomic write has four steps: write PATH.part, fsync() it,
// rename() it to PATH, and fsync() the folder, which holds the new name. The destructor of Beside
// removes the .part file on every way out; after the rename it finds none. Two processes that write
// the same path at once would share its .part file, so callers have to exclude each other.

#include "file.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

using std::filesystem::path;

// Owns an open file. Functions that fail leave the cause in errno.
class Descriptor {
 public:
  Descriptor(const path& file, int flags) : number_(open(file.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] bool good() const { return number_ >= 0; }
  [[nodiscard]] bool flush() const { return fsync(number_) == 0; }
  [[nodiscard]] bool write_all(std::string_view content) {
    // The disk starts writing while the rest is computed, so that flush() has little left to wait
    // for.
    constexpr std::size_t kPiece = std::size_t{1} << 24U;
    while (!content.empty()) {
      const ssize_t written = ::write(number_, content.data(), std::min(content.size(), kPiece));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      content.remove_prefix(static_cast<std::size_t>(written));
      unflushed_ += static_cast<std::size_t>(written);
      if (unflushed_ < kPiece) continue;
      // This is only a hint; flush() reports errors.
      static_cast<void>(sync_file_range(number_, 0, 0, SYNC_FILE_RANGE_WRITE));
      unflushed_ = 0;
    }
    return true;
  }

 private:
  int number_;
  // Bytes written since the last sync_file_range().
  std::size_t unflushed_ = 0;
};

// Removes a half-written file, unless it was renamed.
class Beside {
 public:
  explicit Beside(path file) : file_(std::move(file)) {}
  ~Beside() {
    std::error_code ignored;
    std::filesystem::remove(file_, ignored);
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  [[nodiscard]] const path& file() const { return file_; }

 private:
  path file_;
};

}  // namespace

void cannot_write(const path& file, const std::error_code& error) {
  throw OutputError(fmt::format("{}: cannot write: {}", file.string(), error.message()));
}

void write_file(const path& file, std::string_view content) {
  write_file(file, [content](const ByteSink& sink) { sink(content); });
}

void write_file(const path& file, const ByteSource& content) {
  const Beside beside(path(file) += ".part");
  {
    Descriptor out(beside.file(), O_WRONLY | O_CREAT | O_TRUNC);
    if (!out.good()) cannot_write(file);
    content([&](std::string_view bytes) {
      if (!out.write_all(bytes)) cannot_write(file);
    });
    if (!out.flush()) cannot_write(file);
  }
  if (rename(beside.file().c_str(), file.c_str()) != 0) cannot_write(file);
  // The renaming must reach the disk, too.
  flush_to_disk(parent_of(file));
}

path absolute_path(const path& file) {
  std::error_code error;
  const path whole = std::filesystem::absolute(file, error);
  if (error) {
    throw_error(
        "{}: the working folder cannot be found: {}; accepted: an absolute path, or a start in an "
        "existing folder",
        file.string(), error.message());
  }
  return whole.lexically_normal();
}

void require_readable_folder(const path& folder) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) return;
  if (access(folder.c_str(), R_OK | X_OK) == 0) return;
  throw_error("{}: cannot look into it: {}; accepted: a folder that you may read", folder.string(),
              std::generic_category().message(errno));
}

void require_visible(std::string_view place, const path& path) {
  std::error_code error;
  static_cast<void>(std::filesystem::status(path, error));
  if (error != std::errc::permission_denied) return;
  throw_error("{}cannot look for {}: {}; accepted: a path whose folders you may enter", place,
              path.string(), error.message());
}

bool is_there(const path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

path unused_path(const path& wanted) {
  std::error_code ignored;
  path unused = wanted;
  for (int i = 2; std::filesystem::exists(std::filesystem::symlink_status(unused, ignored)); ++i) {
    unused = fmt::format("{}-{}", wanted.string(), i);
  }
  return unused;
}

path parent_of(const path& file) {
  if (!file.has_filename() && file.has_relative_path()) return parent_of(file.parent_path());
  return file.has_parent_path() ? file.parent_path() : path(".");
}

std::vector<std::filesystem::path> paths_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    paths.push_back(it->path());
  }
  std::ranges::sort(paths);
  return paths;
}

void require_regular_file(const path& file) {
  std::error_code error;
  if (std::filesystem::is_regular_file(file, error)) return;
  throw_error("{}: {}", file.string(), error ? error.message() : "is not a regular file");
}

std::string read_file(const path& file) {
  require_regular_file(file);
  std::error_code error;
  std::ifstream in(file, std::ios::binary);
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  // The file may have been removed since it was looked at.
  if (error) throw_error("{}: cannot read: {}", file.string(), error.message());
  std::string content(size, '\0');
  in.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (!in) {
    throw_error("{}: cannot read: {}", file.string(), std::generic_category().message(errno));
  }
  return content;
}

void flush_to_disk(const path& file) {
  const Descriptor existing(file, O_RDONLY);
  if (!existing.good() || !existing.flush()) cannot_write(file);
}

void flush_own_file(const path& file, std::int64_t bytes) {
  const auto require_own = [&] {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(file, error);
    const bool is_own = !error && std::cmp_equal(size, bytes);
    if (is_own) return;
    throw OutputError(fmt::format(
        "{}: {}", file.string(),
        error ? "has gone while it was written to" : "is no longer the file that was written to"));
  };
  require_own();
  flush_to_disk(file);
  require_own();
}

}  // namespace rubato
