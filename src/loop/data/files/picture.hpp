#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rubato {

/// A PNG or JPEG file, told apart by content, whose header has been read.
struct Picture {
  std::string_view bytes{};
  bool is_png = false;
  std::int64_t height = 0;
  std::int64_t width = 0;
  /// A grey picture has one channel, others have red, green and blue.
  bool is_grey = false;
};

/// Reads the header; `source` stands for the file in messages, and `bytes` have to outlive what is
/// returned. Throws Error for what is no such picture, has more than 2^26 pixels, or claims more
/// pixels than bytes of that number could hold.
[[nodiscard]] Picture read_picture(std::string_view bytes, const std::string& source);

/// Writes the pixels as planes of height x width bytes, `channels` of them, to `planes`: one of a
/// picture in grey, or three, which are the same for one. Palettes are looked up, of 16 bits the
/// higher 8 are taken, transparency and profiles of colour are left out. Throws Error for a picture
/// that is cut off or damaged.
///
/// The same bytes of a PNG give the same pixels everywhere. JPEG leaves the rounding to the
/// decoder: the same pixels come from every libjpeg-turbo that decodes as version 2.1 does, on any
/// processor, with its accurate transform (ISLOW) and its fancy upsampling, which are what Pillow
/// takes.
void decode_picture(const Picture& picture, std::int64_t channels, const std::string& source,
                    char* planes);

}  // namespace rubato
