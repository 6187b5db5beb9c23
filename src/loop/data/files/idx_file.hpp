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

/// The two kinds of IDX files of unsigned bytes that form a labelled image set.
enum class IdxKind : std::uint8_t { images, labels };

/// One IDX file: a shape of at most three dimensions and a byte for each element.
struct IdxFile {
  /// The shape: count, height, width of images; count, 1, 1 of labels. No dimension is 0.
  std::array<std::uint32_t, 3> shape{1, 1, 1};
  std::vector<std::uint8_t> bytes;
};

/// Reads a raw or gzipped IDX file of the given kind. Throws Error with the file, the cause and
/// what would be accepted. Allocations grow with the data that arrive, not with what the header
/// claims.
[[nodiscard]] IdxFile read_idx_file(const std::filesystem::path& path, IdxKind kind);

/// An IDX file in its mapped memory.
struct MappedIdx {
  /// The shape, as in IdxFile.
  std::array<std::uint32_t, 3> shape{1, 1, 1};
  std::string_view bytes{};
  std::shared_ptr<const MappedFile> file{};
};

/// Maps a raw IDX file of the given kind; returns nothing if it is gzipped, or not a regular file.
/// Throws Error as read_idx_file() does.
[[nodiscard]] std::optional<MappedIdx> map_idx_file(const std::filesystem::path& path,
                                                    IdxKind kind);

}  // namespace rubato::detail
