#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace rubato {

/// A published file, with its size and checksum.
struct PublishedFile {
  std::string_view name{};
  /// The size in bytes.
  std::int64_t size = 0;
  std::string_view sha256{};
};

/// A data set that anybody may download (`rubato data get`), and that --data then accepts by name.
struct PublishedData {
  std::string_view name{};
  std::string_view help{};
  /// The kind with which it is read: "KIND:FOLDER".
  std::string_view kind{};
  /// The prefix of its files' addresses.
  std::string_view address{};
  std::span<const PublishedFile> files{};
  /// The files of the data set inside archives (.tar.gz), each of `unpacked_size` bytes; empty if
  /// the files are not archives.
  std::span<const std::string_view> unpacked{};
  std::int64_t unpacked_size = 0;
};

[[nodiscard]] std::span<const PublishedData> published_data();

/// Returns null if no data set has this name.
[[nodiscard]] const PublishedData* find_published_data(std::string_view name);

/// The folder of a published data set once it has been fetched: in the user's cache, whose place
/// XDG defines ($XDG_CACHE_HOME, or ~/.cache). Throws Error if the environment has neither.
[[nodiscard]] std::filesystem::path cached_folder(std::string_view name);

}  // namespace rubato
