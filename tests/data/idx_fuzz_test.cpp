#include <string>

#include <gmock/gmock.h>

#include <rubato/loop/images.hpp>

#include "data/idx_files.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::Bytes;
using test::gzipped;
using test::image_bytes;
using test::label_bytes;

// Spoiled files must be refused with an Error that names them, or read as what they then are; any
// other exception, or a finding of a sanitizer, fails the test.
class IdxFuzz : public test::IdxFiles {
 protected:
  void SetUp() override {
    IdxFiles::SetUp();
    write("images", image_bytes(3, 2, 4));
    write("labels", label_bytes(3));
  }
  std::string error_with(const std::string& name, const Bytes& bytes) const {
    write(name, bytes);
    return error("images", "labels");
  }
};

TEST_F(IdxFuzz, EveryTruncationIsRefused) {
  for (const bool packed : {false, true}) {
    for (const std::string name : {"images", "labels"}) {
      const Bytes raw = name == "images" ? image_bytes(3, 2, 4) : label_bytes(3);
      const Bytes whole = packed ? gzipped(raw) : raw;
      for (std::size_t length = 0; length < whole.size(); ++length) {
        const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
        EXPECT_THAT(error_with(name, part), StartsWith(path(name).string() + ": "))
            << length << " bytes of " << whole.size() << (packed ? " gzipped" : "");
      }
      EXPECT_EQ(error_with(name, whole), "no error");
    }
  }
}

// Every bit of a raw header decides something, so no flip goes unseen.
TEST_F(IdxFuzz, EveryFlippedBitOfAHeaderIsRefused) {
  for (const std::string name : {"images", "labels"}) {
    const Bytes good = name == "images" ? image_bytes(3, 2, 4) : label_bytes(3);
    const std::size_t header = name == "images" ? 16 : 8;
    for (std::size_t bit = 0; bit < 8 * header; ++bit) {
      Bytes bad = good;
      bad[bit / 8] = static_cast<std::uint8_t>(bad[bit / 8] ^ 1U << bit % 8);
      EXPECT_THAT(error_with(name, bad), StartsWith(path(name).string() + ": ")) << "bit " << bit;
    }
    write(name, good);
  }
}

// Pairs of header bytes set to extremes; no such header fits the data any more.
TEST_F(IdxFuzz, ExtremeHeadersAreRefused) {
  const Bytes good = image_bytes(3, 2, 4);
  for (std::size_t a = 0; a < 16; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      for (const std::uint8_t value : Bytes{0x00, 0x01, 0x7f, 0x80, 0xff}) {
        Bytes bad = good;
        bad[a] = value;
        bad[b] = value;
        const std::string message = error_with("images", bad);
        if (bad != good) {
          EXPECT_THAT(message, StartsWith(path("images").string())) << a << ' ' << b;
        }
      }
    }
  }
}

// Flips in a gzip stream are seen by its checksum, but for those in fields that say nothing of the
// data (its time of writing, the system it was written on).
TEST_F(IdxFuzz, FlippedBitsOfAGzipStreamNeverChangeTheData) {
  const ImageSet expected = read_idx(path("images"), path("labels"));
  const Bytes good = gzipped(image_bytes(3, 2, 4));
  int refused = 0;
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    Bytes bad = good;
    bad[bit / 8] = static_cast<std::uint8_t>(bad[bit / 8] ^ 1U << bit % 8);
    if (error_with("images", bad) != "no error") {
      ++refused;
    } else {
      EXPECT_EQ(read_idx(path("images"), path("labels")).pixels, expected.pixels) << "bit " << bit;
    }
  }
  EXPECT_GT(refused, static_cast<int>(8 * (good.size() - 10)));
}

}  // namespace
}  // namespace rubato
