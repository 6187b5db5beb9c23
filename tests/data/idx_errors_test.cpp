#include <string>

#include <gmock/gmock.h>
#include <unistd.h>

#include <rubato/loop/images.hpp>

#include "data/idx_files.hpp"

namespace rubato {
namespace {

using test::gzipped;
using test::idx_bytes;
using test::image_bytes;
using test::label_bytes;
using testing::HasSubstr;
using testing::StartsWith;

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
  const std::string message =
      test::error_of([&] { static_cast<void>(read_idx(file, path("labels"))); });
  EXPECT_EQ(message, file.string() + ": cannot be read: Input/output error" + kImagesAccepted);
}

TEST_F(IdxErrors, AnEmptyFile) {
  write("images", {});
  EXPECT_EQ(
      error("images", "labels"),
      at("images") + ": truncated: 0 bytes where the header alone takes 16" + kImagesAccepted);
}

TEST_F(IdxErrors, ATruncatedHeader) {
  write("labels", {0, 0, 8, 1, 0});
  EXPECT_EQ(error("images", "labels"),
            at("labels") + ": truncated: 5 bytes where the header alone takes 8" + kLabelsAccepted);
}

// As long as its magic, which is then still the first thing to be looked at.
TEST_F(IdxErrors, AFileThatIsItsMagicAlone) {
  write("images", {0, 0, 8, 3});
  EXPECT_EQ(
      error("images", "labels"),
      at("images") + ": truncated: 4 bytes where the header alone takes 16" + kImagesAccepted);
  write("images", {'P', 'K', 3, 4});
  EXPECT_EQ(error("images", "labels"),
            at("images") + ": its magic is 0x504b0304" + kImagesAccepted);
  write("images", {'P', 'K', 3});
  EXPECT_THAT(error("images", "labels"), HasSubstr("truncated: 3 bytes"));
}

TEST_F(IdxErrors, TruncatedData) {
  auto bytes = image_bytes(3, 2, 4);
  bytes.pop_back();
  write("images", bytes);
  EXPECT_EQ(error("images", "labels"), at("images") +
                                           ": truncated: 23 bytes of data where its header says 3 "
                                           "images of 2 x 4 pixels; accepted: 24");
  write("images", gzipped(bytes));
  EXPECT_THAT(error("images", "labels"), HasSubstr("truncated: 23 bytes of data"));
}

TEST_F(IdxErrors, LongerThanTheHeaderSays) {
  auto bytes = label_bytes(3);
  bytes.push_back(0);
  write("labels", bytes);
  EXPECT_EQ(error("images", "labels"),
            at("labels") + ": longer than its header says, 3 labels; accepted: 3 bytes of data");
  write("labels", gzipped(bytes));
  EXPECT_THAT(error("images", "labels"), HasSubstr("longer than its header says"));
}

TEST_F(IdxErrors, ATruncatedGzipStream) {
  auto packed = gzipped(image_bytes(3, 2, 4));
  packed.resize(packed.size() / 2);
  write("images", packed);
  EXPECT_EQ(error("images", "labels"),
            at("images") + ": the gzip stream is truncated: unexpected end of file" +
                kImagesAccepted + ", undamaged");
}

// All data are there; only the end of the stream's own book-keeping is not.
TEST_F(IdxErrors, AGzipStreamWithoutItsLastByte) {
  auto packed = gzipped(image_bytes(3, 2, 4));
  packed.pop_back();
  write("images", packed);
  EXPECT_THAT(error("images", "labels"),
              StartsWith(at("images") + ": the gzip stream is truncated"));
}

TEST_F(IdxErrors, AGzipStreamWithAWrongChecksum) {
  auto packed = gzipped(image_bytes(3, 2, 4));
  packed[packed.size() - 5] ^= 1U;
  write("images", packed);
  EXPECT_EQ(error("images", "labels"), at("images") +
                                           ": the gzip stream is damaged: incorrect data check" +
                                           kImagesAccepted + ", undamaged");
}

TEST_F(IdxErrors, AnotherMagic) {
  write("images", idx_bytes({0xd03, 1, 1, 1}, {0, 0, 0, 0}));
  EXPECT_EQ(error("images", "labels"),
            at("images") + ": its magic is 0x00000d03" + kImagesAccepted);
  write("images", {'P', 'K', 3, 4, 0});
  EXPECT_EQ(error("images", "labels"),
            at("images") + ": its magic is 0x504b0304" + kImagesAccepted);
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

TEST_F(IdxErrors, NoImages) {
  write("images", image_bytes(0, 2, 4));
  EXPECT_EQ(error("images", "labels"), at("images") +
                                           ": its header says 0 images of 2 x 4 pixels; accepted: "
                                           "at least one image of one pixel");
}

TEST_F(IdxErrors, ImagesOfNoPixels) {
  for (const auto& bytes : {image_bytes(3, 0, 4), image_bytes(3, 2, 0)}) {
    write("images", bytes);
    EXPECT_THAT(error("images", "labels"),
                HasSubstr("; accepted: at least one image of one pixel"));
  }
}

TEST_F(IdxErrors, NoLabels) {
  write("labels", label_bytes(0));
  EXPECT_EQ(error("images", "labels"),
            at("labels") + ": its header says 0 labels; accepted: at least one label");
}

TEST_F(IdxErrors, CountsThatDisagree) {
  write("labels", label_bytes(4));
  EXPECT_EQ(error("images", "labels"), at("images") + " holds 3 images, but " + at("labels") +
                                           " holds 4 labels; accepted: as many of both");
}

// 1.7 TB: to believe the header would be bad_alloc, not Error.
TEST_F(IdxErrors, AHeaderThatClaimsMoreThanMemory) {
  for (const bool packed : {false, true}) {
    const auto bytes = idx_bytes({0x803, 1U << 31U, 28, 28}, {1, 2, 3});
    write("images", packed ? gzipped(bytes) : bytes);
    EXPECT_EQ(error("images", "labels"),
              at("images") +
                  ": truncated: 3 bytes of data where its header says 2147483648 images of 28 x 28 "
                  "pixels; accepted: 1683627180032");
  }
}

// The product of the dimensions does not fit into 64 bits.
TEST_F(IdxErrors, AHeaderThatClaimsMoreThanAnyFile) {
  constexpr std::uint32_t kMost = 0xffffffff;
  write("images", idx_bytes({0x803, kMost, kMost, kMost}, {1, 2, 3}));
  EXPECT_EQ(error("images", "labels"),
            at("images") +
                ": its header says 4294967295 images of 4294967295 x 4294967295 pixels, more than "
                "any file holds" +
                kImagesAccepted);
}

}  // namespace
}  // namespace rubato
