#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "mapped_file.hpp"

namespace rubato::detail {

/// The two kinds of IDX files of unsigned bytes that a labelled image set is made of.
enum class IdxKind : std::uint8_t { images, labels };

/// One IDX file: a shape of at most three dimensions and a byte for each element.
struct IdxFile {
  /// Images: count, height, width; labels: count, 1, 1. No dimension is 0.
  std::array<std::uint32_t, 3> shape{1, 1, 1};
  std::vector<std::uint8_t> bytes;
};

/// Reads a raw or gzipped IDX file of the given kind. Throws Error with the file, what is wrong and
/// what would be accepted. What is allocated grows with the data that arrive, not with what the
/// header claims.
[[nodiscard]] IdxFile read_idx_file(const std::filesystem::path& path, IdxKind kind);

/// One IDX file where it lies.
struct MappedIdx {
  /// As in IdxFile.
  std::array<std::uint32_t, 3> shape{1, 1, 1};
  std::string_view bytes{};
  std::shared_ptr<const MappedFile> file{};
};

/// Maps a raw IDX file of the given kind; empty where it is gzipped, or no regular file. Throws
/// Error as read_idx_file() does.
[[nodiscard]] std::optional<MappedIdx> map_idx_file(const std::filesystem::path& path,
                                                    IdxKind kind);

}  // namespace rubato::detail
