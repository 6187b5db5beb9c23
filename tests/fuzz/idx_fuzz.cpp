// read_idx(): refuses two files with an Error, or reads them. The first byte says which share of
// the input is the image file; the rest is the label file.

#include <cstddef>
#include <cstdint>
#include <span>

#include <rubato/base/error.hpp>
#include <rubato/loop/images.hpp>

#include "base/core/check.hpp"
#include "memory_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::uint8_t> bytes(data + 1, size - 1);
  const std::size_t split = bytes.size() * data[0] / 255;
  const rubato::fuzz::MemoryFile images(bytes.first(split));
  const rubato::fuzz::MemoryFile labels(bytes.subspan(split));
  try {
    const rubato::ImageSet set = rubato::read_idx(images.path(), labels.path());
    RUBATO_CHECK(
        set.pixels.size() == static_cast<std::size_t>(set.count * set.height * set.width) &&
            set.labels.size() == static_cast<std::size_t>(set.count),
        "an image set is as large as it says");
  } catch (const rubato::Error&) {
    // As it should be.
  }
  return 0;
}
