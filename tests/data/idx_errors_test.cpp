#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <rubato/loop/images.hpp>

#include "data/idx_files.hpp"

namespace rubato {
namespace {

using test::gzipped;
using test::idx_bytes;
using test::image_bytes;
using test::label_bytes;

constexpr const char* kImagesAccepted =
    "; accepted: an IDX image file (magic 0x00000803), raw or gzipped";
constexpr const char* kLabelsAccepted =
    "; accepted: an IDX label file (magic 0x00000801), raw or gzipped";

// Two valid files, of which each test spoils one.
class IdxErrors : public test::IdxFiles {
 protected:
  void SetUp() override {
    IdxFiles::SetUp();
    write("images", image_bytes(3, 2, 4));
    write("labels", label_bytes(3));
  }
  [[nodiscard]] std::string at(const std::string& name) const { return path(name).string(); }
};

TEST_F(IdxErrors, TheFilesThemselvesAreGood) {
  EXPECT_EQ(error("images", "labels"), "no error");
}

TEST_F(IdxErrors, AMissingFile) {
  EXPECT_EQ(error("absent", "labels"),
            at("absent") + ": cannot be read: No such file or directory" + kImagesAccepted);
  EXPECT_EQ(error("images", "absent"),
            at("absent") + ": cannot be read: No such file or directory" + kLabelsAccepted);
}

TEST_F(IdxErrors, AFolder) {
  std::filesystem::create_directory(path("folder"));
  EXPECT_EQ(error("folder", "labels"), at("folder") + ": is a folder" + kImagesAccepted);
  EXPECT_EQ(error("images", "folder"), at("folder") + ": is a folder" + kLabelsAccepted);
}

TEST_F(IdxErrors, AFileWithoutPermission) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads every file";
  std::filesystem::permissions(path("labels"), std::filesystem::perms::none);
  EXPECT_EQ(error("images", "labels"),
            at("labels") + ": cannot be read: Permission denied" + kLabelsAccepted);
}

// Linux opens this file, and only reading it fails.
TEST_F(IdxErrors, AFileThatCannotBeReadOnceItIsOpen) {
  const std::filesystem::path file = "/proc/self/mem";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file;
  const std::string message = test::error_of([&] { return read_idx(file, path("labels")); });
  EXPECT_EQ(message, file.string() + ": cannot be read: Input/output error" + kImagesAccepted);
}

// A file that takes the place of one of the two, and the message behind its name.
struct Spoiled {
  std::string file;
  test::Bytes bytes;
  std::string message;
};

test::Bytes cut(test::Bytes bytes, std::size_t left) {
  bytes.resize(left);
  return bytes;
}

TEST_F(IdxErrors, SayWhatIsWrong) {
  const test::Bytes images = image_bytes(3, 2, 4);
  const test::Bytes packed = gzipped(images);
  test::Bytes wrong_sum = packed;
  wrong_sum[wrong_sum.size() - 5] ^= 1U;
  const test::Bytes terabytes = idx_bytes({0x803, 1U << 31U, 28, 28}, {1, 2, 3});
  const std::string images_accepted = kImagesAccepted;
  const std::string no_header = ": truncated: {} bytes where the header alone takes {}{}";
  const std::string short_data =
      ": truncated: 23 bytes of data where its header says 3 images of 2 x 4 pixels; accepted: 24";
  const std::string no_pixels =
      ": its header says 3 images of {} pixels; accepted: at least one image of one pixel";
  const std::string too_long = ": longer than its header says, 3 labels; accepted: 3 bytes of data";
  const std::string terabytes_are_not_there =
      ": truncated: 3 bytes of data where its header says 2147483648 images of 28 x 28 pixels; "
      "accepted: 1683627180032";
  constexpr std::uint32_t kMost = 0xffffffff;
  const std::vector<Spoiled> all{
      {"images", {}, fmt::format(fmt::runtime(no_header), 0, 16, kImagesAccepted)},
      {"labels", {0, 0, 8, 1, 0}, fmt::format(fmt::runtime(no_header), 5, 8, kLabelsAccepted)},
      // As long as its magic, which is then still the first thing to be looked at.
      {"images", {0, 0, 8, 3}, fmt::format(fmt::runtime(no_header), 4, 16, kImagesAccepted)},
      {"images", {'P', 'K', 3, 4}, ": its magic is 0x504b0304" + images_accepted},
      {"images", {'P', 'K', 3}, fmt::format(fmt::runtime(no_header), 3, 16, kImagesAccepted)},
      {"images", {'P', 'K', 3, 4, 0}, ": its magic is 0x504b0304" + images_accepted},
      {"images", idx_bytes({0xd03, 1, 1, 1}, {0, 0, 0, 0}),
       ": its magic is 0x00000d03" + images_accepted},
      {"images", cut(images, images.size() - 1), short_data},
      {"images", gzipped(cut(images, images.size() - 1)), short_data},
      {"labels", cut(label_bytes(3), 12), too_long},
      {"labels", gzipped(cut(label_bytes(3), 12)), too_long},
      {"images", cut(packed, packed.size() / 2),
       ": the gzip stream is truncated: unexpected end of file" + images_accepted + ", undamaged"},
      // All data are there; only the end of the stream's own book-keeping is not.
      {"images", cut(packed, packed.size() - 1),
       ": the gzip stream is truncated: unexpected end of file" + images_accepted + ", undamaged"},
      {"images", wrong_sum,
       ": the gzip stream is damaged: incorrect data check" + images_accepted + ", undamaged"},
      {"images", image_bytes(0, 2, 4),
       ": its header says 0 images of 2 x 4 pixels; accepted: at least one image of one pixel"},
      {"images", image_bytes(3, 0, 4), fmt::format(fmt::runtime(no_pixels), "0 x 4")},
      {"images", image_bytes(3, 2, 0), fmt::format(fmt::runtime(no_pixels), "2 x 0")},
      {"labels", label_bytes(0), ": its header says 0 labels; accepted: at least one label"},
      // 1.7 TB: to believe the header would be bad_alloc, not Error.
      {"images", terabytes, terabytes_are_not_there},
      {"images", gzipped(terabytes), terabytes_are_not_there},
      // The product of the dimensions does not fit into 64 bits.
      {"images", idx_bytes({0x803, kMost, kMost, kMost}, {1, 2, 3}),
       ": its header says 4294967295 images of 4294967295 x 4294967295 pixels, more than any file "
       "holds" +
           images_accepted}};
  for (const Spoiled& spoiled : all) {
    write("images", image_bytes(3, 2, 4));
    write("labels", label_bytes(3));
    write(spoiled.file, spoiled.bytes);
    EXPECT_EQ(error("images", "labels"), at(spoiled.file) + spoiled.message);
  }
}

TEST_F(IdxErrors, SwappedFiles) {
  EXPECT_EQ(error("labels", "images"),
            at("labels") +
                ": its magic is 0x00000801, which is an IDX label file: are images and labels "
                "swapped?" +
                kImagesAccepted);
  EXPECT_EQ(error("images", "images"),
            at("images") +
                ": its magic is 0x00000803, which is an IDX image file: are images and labels "
                "swapped?" +
                kLabelsAccepted);
}

TEST_F(IdxErrors, CountsThatDisagree) {
  write("labels", label_bytes(4));
  EXPECT_EQ(error("images", "labels"), at("images") + " holds 3 images, but " + at("labels") +
                                           " holds 4 labels; accepted: as many of both");
}

}  // namespace
}  // namespace rubato
