#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace rubato {

/// A file as it is published, and by what it is known.
struct PublishedFile {
  std::string_view name{};
  /// In bytes.
  std::int64_t size = 0;
  std::string_view sha256{};
};

/// A data set that anybody may fetch (`rubato data get`), and that --data then takes by name.
struct PublishedData {
  std::string_view name{};
  std::string_view help{};
  /// How it is read: as "KIND:FOLDER".
  std::string_view kind{};
  /// What its files stand behind.
  std::string_view address{};
  std::span<const PublishedFile> files{};
  /// Where the files are archives (.tar.gz): the files of the data set in them, each of
  /// `unpacked_size` bytes.
  std::span<const std::string_view> unpacked{};
  std::int64_t unpacked_size = 0;
};

[[nodiscard]] std::span<const PublishedData> published_data();

/// Null where none is called so.
[[nodiscard]] const PublishedData* find_published_data(std::string_view name);

/// Where a known data set lies once it was fetched: a folder in the user's cache, of which XDG says
/// where it is ($XDG_CACHE_HOME, or ~/.cache). Throws Error where the environment names neither.
[[nodiscard]] std::filesystem::path cached_folder(std::string_view name);

}  // namespace rubato
