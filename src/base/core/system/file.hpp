#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>

namespace rubato {

/// What was computed could not be written: a full disk, a folder that has gone.
class OutputError : public Error {
 public:
  using Error::Error;
};

/// Writes a file as a whole, so that it is never seen half written and survives a power failure:
/// beside (as `path`.part), flushed to the disk, renamed into place. What was there before stays
/// until then. Throws OutputError when that fails, and leaves nothing beside.
void write_file(const std::filesystem::path& path, std::string_view content);
/// The same with what `content` gives. What it throws is passed on, and nothing is left either.
void write_file(const std::filesystem::path& path, const ByteSource& content);

/// The same without waiting for the disk, for what is soon written again.
void replace_file(const std::filesystem::path& path, std::string_view content);

/// The path from the root, without "." and "..". Throws Error where the working folder, which a
/// relative path begins at, has been deleted.
[[nodiscard]] std::filesystem::path absolute_path(const std::filesystem::path& path);

/// Throws Error where the folder is there, but this user may not look into it.
void require_readable_folder(const std::filesystem::path& folder);

/// Whether there is a file or folder; not where nobody may look.
[[nodiscard]] bool is_there(const std::filesystem::path& path);

/// The bytes of a regular file. Throws Error when it cannot be read.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

/// Flushes what was written to the file, by whomever, to the disk. Throws OutputError.
void flush_to_disk(const std::filesystem::path& path);

/// `wanted`, or where that exists the first of wanted-2, wanted-3, ... that does not.
[[nodiscard]] std::filesystem::path unused_path(const std::filesystem::path& wanted);

/// The folder that holds a file or folder, "." where the path names none: flushing it brings a new
/// name to the disk. A slash at the end changes nothing.
[[nodiscard]] std::filesystem::path parent_of(const std::filesystem::path& path);

}  // namespace rubato
