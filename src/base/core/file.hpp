#pragma once

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>

namespace rubato {

/// Maps paths, such as relative ones to those from another folder.
using PathMap = std::function<std::filesystem::path(const std::filesystem::path&)>;

/// Thrown if results cannot be written: a full disk, a deleted folder.
class OutputError : public Error {
 public:
  using Error::Error;
};

/// Throws OutputError about a file that cannot be written: "PATH: cannot write: CAUSE".
[[noreturn]] void cannot_write(const std::filesystem::path& path,
                               const std::error_code& error = {errno, std::generic_category()});

/// Writes a file atomically and durably: to `path`.part, flushed to the disk, renamed into place.
/// Readers see the old file until then, and never half a file. Throws OutputError on failure and
/// removes the .part file.
void write_file(const std::filesystem::path& path, std::string_view content);
/// Like the function above, with bytes from `content`. Exceptions of `content` are passed on after
/// the same cleaning up.
void write_file(const std::filesystem::path& path, const ByteSource& content);

/// The path from the root, without "." and "..". Throws Error if the path is relative and the
/// working folder has been deleted.
[[nodiscard]] std::filesystem::path absolute_path(const std::filesystem::path& path);

/// Throws Error if the folder exists and this user may not read it.
void require_readable_folder(const std::filesystem::path& folder);

/// Throws Error if this user may not enter a folder of the path, so that nobody can say whether
/// there is such a file. `place` is put in front of the message ("--trace: ").
void require_visible(std::string_view place, const std::filesystem::path& path);

/// True if a file or folder exists and this user may see it.
[[nodiscard]] bool is_there(const std::filesystem::path& path);

/// The paths in a folder, in the order of their names, as far as it can be read.
[[nodiscard]] std::vector<std::filesystem::path> paths_in(const std::filesystem::path& folder);

/// Throws Error unless this is a regular file, or a link to one: a device or a pipe may have no
/// end.
void require_regular_file(const std::filesystem::path& file);

/// The bytes of a regular file. Throws Error if it cannot be read.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

/// Flushes the file to the disk, whoever wrote it. Throws OutputError.
void flush_to_disk(const std::filesystem::path& path);

/// Like the function above, for a file to which this process has written `bytes` bytes. Also throws
/// OutputError if the file was removed or replaced since, before the flush or during it.
void flush_own_file(const std::filesystem::path& path, std::int64_t bytes);

/// `wanted`, or the first of wanted-2, wanted-3, ... that does not exist.
[[nodiscard]] std::filesystem::path unused_path(const std::filesystem::path& wanted);

/// The folder that holds a file or folder, "." if the path names none. Flushing it brings a new
/// name to the disk. A trailing slash makes no difference.
[[nodiscard]] std::filesystem::path parent_of(const std::filesystem::path& path);

}  // namespace rubato
