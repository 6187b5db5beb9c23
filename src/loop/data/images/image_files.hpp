#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loop/data/input_file.hpp"

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

namespace rubato {

/// A PNG or JPEG file, distinguished by content, whose header has been read.
struct Picture {
  std::string_view bytes{};
  bool is_png = false;
  std::int64_t height = 0;
  std::int64_t width = 0;
  /// A grey picture has one channel, others have red, green and blue.
  bool is_grey = false;
  /// True for 16 bits in each channel.
  bool is_deep = false;
};

/// Reads the header. Messages name the file as `source`, and `bytes` must outlive the result.
/// Throws Error for any other content, for more than 2^26 pixels, and for more pixels than that
/// number of bytes could hold.
[[nodiscard]] Picture read_picture(std::string_view bytes, const std::string& source);

/// Writes the pixels as planes of height x width bytes, `channels` of them, to `planes`: one for a
/// grey picture, or three, which are equal if it is grey. Palettes are looked up, the higher 8 bits
/// are taken of 16, transparency and colour profiles are left out. Returns the largest value of 16
/// bits; 0 if the picture has 8. Throws Error for a picture that is cut off or damaged.
///
/// The same bytes of a PNG give the same pixels everywhere. JPEG leaves rounding to the decoder:
/// every libjpeg-turbo that decodes like version 2.1 gives the same pixels, on any processor, with
/// its accurate transform (ISLOW) and its fancy upsampling, which Pillow uses, too.
std::uint32_t decode_picture(const Picture& picture, std::int64_t channels,
                             const std::string& source, char* planes);

}  // namespace rubato
