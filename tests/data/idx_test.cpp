#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/loop/images.hpp>

#include "data/idx_files.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::gzipped;
using test::image_bytes;
using test::label_bytes;

class Idx : public test::IdxFiles {};

TEST_F(Idx, ReadsRawFiles) {
  const ImageSet set = read_idx(write("i", image_bytes(3, 2, 4)),
                                write("l", test::idx_bytes({0x801, 3}, {7, 0, 9})));
  EXPECT_EQ(set.count, 3);
  EXPECT_EQ(set.height, 2);
  EXPECT_EQ(set.width, 4);
  EXPECT_EQ(set.pixels.size(), 24U);
  EXPECT_THAT(set.image(1), ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
  EXPECT_THAT(set.labels, ElementsAre(7, 0, 9));
}

TEST_F(Idx, TellsGzipByContentNotByName) {
  const auto packed_images = write("i", gzipped(image_bytes(3, 2, 4)));
  const auto packed_labels = write("l", gzipped(label_bytes(3)));
  const ImageSet packed = read_idx(packed_images, packed_labels);
  const ImageSet raw = read_idx(write("i.gz", image_bytes(3, 2, 4)), write("l.gz", label_bytes(3)));
  EXPECT_EQ(packed.pixels, raw.pixels);
  EXPECT_EQ(packed.labels, raw.labels);
}

TEST_F(Idx, ReadsAGzipFileOfSeveralStreams) {
  const auto bytes = image_bytes(3, 2, 4);
  auto packed = gzipped({bytes.begin(), bytes.begin() + 21});
  const auto rest = gzipped({bytes.begin() + 21, bytes.end()});
  packed.insert(packed.end(), rest.begin(), rest.end());
  const ImageSet set = read_idx(write("i.gz", packed), write("l", label_bytes(3)));
  EXPECT_THAT(set.image(2), ElementsAre(16, 17, 18, 19, 20, 21, 22, 23));
}

// More than the room that the reader starts with, and not a power of two of it.
TEST_F(Idx, ReadsFilesOfSeveralMebibytes) {
  const auto bytes = image_bytes(5000, 30, 31);
  for (const auto& content : {bytes, gzipped(bytes)}) {
    const ImageSet set = read_idx(write("i", content), write("l", label_bytes(5000)));
    ASSERT_EQ(set.pixels.size(), 5000U * 30 * 31);
    EXPECT_TRUE(std::equal(set.pixels.begin(), set.pixels.end(), bytes.begin() + 16));
    EXPECT_EQ(set.pixels.capacity(), set.pixels.size()) << "memory that is never used";
  }
}

// The reader of single streams has given millions of pixels when it finds what it leaves to zlib.
TEST_F(Idx, GoesOnBehindALargeStream) {
  const auto bytes = image_bytes(5000, 30, 31);
  auto packed = gzipped({bytes.begin(), bytes.begin() + 4'000'000});
  const auto rest = gzipped({bytes.begin() + 4'000'000, bytes.end()});
  packed.insert(packed.end(), rest.begin(), rest.end());
  const auto labels = write("l", label_bytes(5000));
  for (const bool has_garbage : {false, true}) {
    if (has_garbage) packed.insert(packed.end(), 100, 7);
    const ImageSet set = read_idx(write("i.gz", packed), labels);
    EXPECT_TRUE(std::equal(set.pixels.begin(), set.pixels.end(), bytes.begin() + 16, bytes.end()));
  }
}

TEST_F(Idx, ChecksALargeStream) {
  auto packed = gzipped(image_bytes(5000, 30, 31));
  write("l", label_bytes(5000));
  packed[packed.size() - 5] ^= 1U;
  write("i.gz", packed);
  EXPECT_THAT(error("i.gz", "l"),
              HasSubstr(": the gzip stream is damaged: incorrect data check; accepted: "));
}

class IdxFolder : public test::IdxFiles {
 protected:
  // A folder of three training and two test images, under the names that usage has.
  void write_all(const std::string& separator, const std::string& ending) const {
    const auto packed = [&](const test::Bytes& bytes) {
      return ending.empty() ? bytes : gzipped(bytes);
    };
    write("train-images" + separator + "idx3-ubyte" + ending, packed(image_bytes(3, 2, 2)));
    write("train-labels" + separator + "idx1-ubyte" + ending, packed(label_bytes(3)));
    write("t10k-images" + separator + "idx3-ubyte" + ending, packed(image_bytes(2, 2, 2)));
    write("t10k-labels" + separator + "idx1-ubyte" + ending, packed(label_bytes(2)));
  }
  [[nodiscard]] std::string folder_error() const {
    return test::error_of([&] { return read_idx_folder(folder()); });
  }
};

TEST_F(IdxFolder, ReadsEveryUsualName) {
  for (const std::string separator : {"-", "."}) {
    for (const std::string ending : {"", ".gz"}) {
      write_all(separator, ending);
      const TrainTestImages sets = read_idx_folder(folder());
      EXPECT_EQ(sets.train.count, 3) << separator << ending;
      EXPECT_EQ(sets.test.count, 2) << separator << ending;
      EXPECT_THAT(sets.test.labels, ElementsAre(0, 1));
      for (const auto& file : std::filesystem::directory_iterator(folder())) {
        std::filesystem::remove(file);
      }
    }
  }
}

TEST_F(IdxFolder, AFolderThatIsCalledLikeAFileIsNoFile) {
  write_all(".", "");
  std::filesystem::create_directory(path("train-images-idx3-ubyte"));
  EXPECT_EQ(read_idx_folder(folder()).train.count, 3);
}

TEST_F(IdxFolder, AnUnpackedFileGoesBeforeAPackedOne) {
  write_all("-", ".gz");
  write("train-labels.idx1-ubyte", test::idx_bytes({0x801, 3}, {4, 5, 6}));
  EXPECT_THAT(read_idx_folder(folder()).train.labels, ElementsAre(4, 5, 6));
}

TEST_F(IdxFolder, NamesTheFileThatIsMissing) {
  for (const std::string part : {"train", "t10k"}) {
    for (const std::string kind : {"images", "labels"}) {
      write_all("-", ".gz");
      const std::string stem = fmt::format("{}-{}", part, kind);
      const std::string type = kind == "images" ? "idx3-ubyte" : "idx1-ubyte";
      std::filesystem::remove(path(fmt::format("{}-{}.gz", stem, type)));
      EXPECT_EQ(folder_error(), fmt::format("{0}: has no {1} file; accepted: {1}-{2} or {1}.{2}, "
                                            "each with or without .gz",
                                            folder().string(), stem, type));
    }
  }
}

TEST_F(IdxFolder, RefusesWhatIsNoFolder) {
  const auto file = write("mnist.zip", {1, 2, 3});
  for (const auto& other : {file, path("nowhere")}) {
    const std::string message = test::error_of([&] { return read_idx_folder(other); });
    EXPECT_THAT(message, StartsWith(other.string() + ": is not a folder"));
    EXPECT_THAT(message, HasSubstr("; accepted: a folder with the files train-images, "
                                   "train-labels, t10k-images and t10k-labels"));
  }
}

TEST_F(IdxFolder, RefusesTrainingAndTestImagesOfTwoSizes) {
  write_all("-", "");
  write("t10k-images-idx3-ubyte", image_bytes(2, 2, 3));
  EXPECT_EQ(folder_error(), folder().string() +
                                ": training images of 2 x 2 pixels, test images of 2 x 3; "
                                "accepted: one size for both");
}

}  // namespace
}  // namespace rubato
