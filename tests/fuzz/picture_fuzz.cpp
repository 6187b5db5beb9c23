// read_picture() and decode_picture(): refuse a file with an Error, or decode it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <rubato/base/error.hpp>

#include "loop/data/images/image_files.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const rubato::Picture picture = rubato::read_picture(bytes, "picture");
    // Larger ones take long.
    constexpr std::int64_t kMostPixels = std::int64_t{1} << 20U;
    if (picture.height * picture.width > kMostPixels) return 0;
    std::string planes(static_cast<std::size_t>(3 * picture.height * picture.width), '\0');
    rubato::decode_picture(picture, 3, "picture", planes.data());
  } catch (const rubato::Error&) {
    // As it should be.
  }
  return 0;
}
