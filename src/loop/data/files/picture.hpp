#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rubato {

/// A PNG or JPEG file, distinguished by content, whose header has been read.
struct Picture {
  std::string_view bytes{};
  bool is_png = false;
  std::int64_t height = 0;
  std::int64_t width = 0;
  /// A grey picture has one channel, others have red, green and blue.
  bool is_grey = false;
};

/// Reads the header. Messages name the file as `source`, and `bytes` must outlive the result.
/// Throws Error for any other content, for more than 2^26 pixels, and for more pixels than that
/// number of bytes could hold.
[[nodiscard]] Picture read_picture(std::string_view bytes, const std::string& source);

/// Writes the pixels as planes of height x width bytes, `channels` of them, to `planes`: one for a
/// grey picture, or three, which are equal if it is grey. Palettes are looked up, the higher 8 bits
/// are taken of 16, transparency and colour profiles are left out. Throws Error for a picture that
/// is cut off or damaged.
///
/// The same bytes of a PNG give the same pixels everywhere. JPEG leaves rounding to the decoder:
/// every libjpeg-turbo that decodes like version 2.1 gives the same pixels, on any processor, with
/// its accurate transform (ISLOW) and its fancy upsampling, which Pillow uses, too.
void decode_picture(const Picture& picture, std::int64_t channels, const std::string& source,
                    char* planes);

}  // namespace rubato
