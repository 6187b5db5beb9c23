// Folders of PNG and JPEG files: what is made of them, and what hostile ones do.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <zlib.h>

#include "base/state/sha256.hpp"
#include "fuzz/read_samples.hpp"
#include "loop/data/data_files.hpp"
#include "loop/data/images/image_files.hpp"
#include "support/damaged_files.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (const unsigned shift : {24U, 16U, 8U, 0U})
    bytes += static_cast<char>(number >> shift & 0xFFU);
  return bytes;
}

std::string png_chunk(const std::string& name, const std::string& data) {
  const std::string part = name + data;
  const uLong sum =
      crc32(0, reinterpret_cast<const Bytef*>(part.data()), static_cast<uInt>(part.size()));
  return big_endian(static_cast<std::uint32_t>(data.size())) + part +
         big_endian(static_cast<std::uint32_t>(sum));
}

std::string packed_rows(const std::string& bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uLong>(bytes.size()));
  packed.resize(size);
  return packed;
}

// How a PNG stores its pixels.
struct PngKind {
  int bits = 8;
  // 0: grey, 2: colours, 3: palette, 4: grey with transparency, 6: colours with transparency.
  int colour = 0;
  bool interlaced = false;
  std::string more{};
};

// Each row begins with its filter, 0.
std::string png(std::uint32_t width, std::uint32_t height, const std::string& rows,
                const PngKind& kind = {}) {
  const std::string header =
      big_endian(width) + big_endian(height) +
      std::string{static_cast<char>(kind.bits), static_cast<char>(kind.colour), 0, 0,
                  kind.interlaced ? '\1' : '\0'};
  return "\x89PNG\r\n\x1A\n" + png_chunk("IHDR", header) + kind.more +
         png_chunk("IDAT", packed_rows(rows)) + png_chunk("IEND", "");
}

std::string raw(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

std::string from_hex(std::string_view text) {
  std::string of;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    of += static_cast<char>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16));
  }
  return of;
}

// Of 16 x 16 pixels (16 x, 16 y, 8 (x + y)), with a quarter of the samples of colour.
std::string jpeg() {
  return from_hex(
      "ffd8ffe000104a46494600010100000100010000ffdb004300080606070605080707070909080a0c140d0c0b0b"
      "0c1912130f141d1a1f1e1d1a1c1c20242e2720222c231c1c2837292c30313434341f27393d38323c2e333432ff"
      "db0043010909090c0b0c180d0d1832211c21323232323232323232323232323232323232323232323232323232"
      "3232323232323232323232323232323232323232323232ffc00011080010001003012200021101031101ffc400"
      "1500010100000000000000000000000000000607ffc40018100100030100000000000000000000000005002231"
      "a1ffc40014010100000000000000000000000000000000ffc40018110003010100000000000000000000000000"
      "03052131ffda000c03010002110311003f009b9c06522e380ca7224380ca722e380ca429a20dee69ffd9");
}

std::vector<int> planes_of(const std::string& file, std::int64_t channels) {
  const Picture picture = read_picture(file, "p");
  std::string planes(static_cast<std::size_t>(channels * picture.height * picture.width), '\0');
  decode_picture(picture, channels, "p", planes.data());
  const auto* const begin = reinterpret_cast<const unsigned char*>(planes.data());
  return {begin, begin + planes.size()};
}

std::string error_decoding(const std::string& file) {
  return error_of([&] { return planes_of(file, 1); });
}

// By hand: these are the numbers that the files store.
TEST(Picture, HasThePixelsOfAPng) {
  const std::string grey = raw({0, 1, 2, 3, 0, 40, 50, 255});
  EXPECT_THAT(planes_of(png(3, 2, grey), 1), ElementsAre(1, 2, 3, 40, 50, 255));
  EXPECT_THAT(planes_of(png(3, 1, raw({0, 1, 2, 3})), 3), ElementsAre(1, 2, 3, 1, 2, 3, 1, 2, 3));
  EXPECT_THAT(planes_of(png(2, 1, raw({0, 1, 2, 3, 4, 5, 6}), {.colour = 2}), 3),
              ElementsAre(1, 4, 2, 5, 3, 6));
  // The second of each pair is transparency, and the lower half of 16 bits.
  EXPECT_THAT(planes_of(png(2, 1, raw({0, 7, 0, 9, 128}), {.colour = 4}), 1), ElementsAre(7, 9));
  EXPECT_THAT(planes_of(png(1, 1, raw({0, 1, 2, 3, 0}), {.colour = 6}), 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(planes_of(png(2, 1, raw({0, 7, 255, 9, 1}), {.bits = 16}), 1), ElementsAre(7, 9));
  // One bit each: 0 is black, 1 is white.
  EXPECT_THAT(planes_of(png(3, 1, raw({0, 0xA0}), {.bits = 1}), 1), ElementsAre(255, 0, 255));
  EXPECT_THAT(planes_of(png(2, 1, raw({0, 1, 0}),
                            {.colour = 3, .more = png_chunk("PLTE", raw({1, 2, 3, 4, 5, 6}))}),
                        3),
              ElementsAre(4, 1, 5, 2, 6, 3));
  // Passes of one pixel, of another, and of the second row.
  EXPECT_THAT(planes_of(png(2, 2, raw({0, 1, 0, 2, 0, 3, 4}), {.interlaced = true}), 1),
              ElementsAre(1, 2, 3, 4));
  // A gamma of 1 changes nothing, as in Pillow.
  EXPECT_THAT(
      planes_of(png(1, 1, raw({0, 100}), {.more = png_chunk("gAMA", big_endian(100000))}), 1),
      ElementsAre(100));
}

// By libjpeg-turbo's djpeg; near to what was stored, and the same with and without SIMD.
TEST(Picture, HasThePixelsOfAJpeg) {
  const std::vector<int> planes = planes_of(jpeg(), 3);
  for (int y = 0; y < 16; ++y) {
    for (int x = 0; x < 16; ++x) {
      const auto at = static_cast<std::size_t>(16 * y + x);
      EXPECT_NEAR(planes[at], 16 * x, 22) << x << " " << y;
      EXPECT_NEAR(planes[256 + at], 16 * y, 22) << x << " " << y;
      EXPECT_NEAR(planes[512 + at], 8 * (x + y), 22) << x << " " << y;
    }
  }
  EXPECT_EQ(Sha256::hex_of(std::string(planes.begin(), planes.end())),
            "05dcf1ab57567259c73edb6d719b39797e375038ca56777849d52f10531e1f90");
}

TEST(Picture, SaysWhatIsWrong) {
  const std::string good = png(3, 2, raw({0, 1, 2, 3, 0, 40, 50, 255}));
  EXPECT_EQ(error_decoding(good), "no error");
  EXPECT_EQ(error_decoding("GIF89a"),
            "p: it is neither PNG nor JPEG; accepted: a whole PNG or JPEG file");
  EXPECT_THAT(error_decoding(good.substr(0, 20)), HasSubstr("p: it is cut off"));
  EXPECT_THAT(error_decoding(png(3, 2, raw({0, 1, 2, 3}))), HasSubstr("; accepted: a whole PNG"));
  std::string damaged = good;
  damaged[damaged.size() - 20] ^= 1;
  EXPECT_THAT(error_decoding(damaged), HasSubstr("; accepted: a whole PNG"));
  // Whatever a header claims is not allocated.
  EXPECT_THAT(error_decoding(png(1U << 31U, 1U << 31U, "")),
              HasSubstr("p: its header says 2147483648 x 2147483648 pixels; accepted: up to"));
  EXPECT_THAT(error_decoding(png(8000, 8000, "")),
              HasSubstr("it claims 8000 x 8000 pixels, which"));
  EXPECT_THAT(error_decoding(png(0, 3, "")), HasSubstr("its header says 3 x 0 pixels"));
}

// Each scan goes over the whole picture.
TEST(Picture, RefusesAJpegOfScansWithoutEnd) {
  // Of 8 x 8 pixels, with a scan for each of three components.
  const std::string good = from_hex(
      "ffd8ffe000104a46494600010100000100010000ffdb004300080606070605080707070909080a0c140d0c0b0b"
      "0c1912130f141d1a1f1e1d1a1c1c20242e2720222c231c1c2837292c30313434341f27393d38323c2e333432ff"
      "db0043010909090c0b0c180d0d1832211c21323232323232323232323232323232323232323232323232323232"
      "3232323232323232323232323232323232323232323232ffc00011080008000803012200021101031101ffc400"
      "14000100000000000000000000000000000007ffc40017100100030000000000000000000000000005002231ff"
      "da0008010100003f0037380ca4ffc40014010100000000000000000000000000000000ffc40017110003010000"
      "000000000000000000000000010211ffda0008010211003f004d3c3fffc4001401010000000000000000000000"
      "0000000002ffc400191100010500000000000000000000000000040001031321ffda0008010311003f0041192d"
      "4dabffd9");
  EXPECT_EQ(error_decoding(good), "no error");
  const std::string scan =
      good.substr(good.rfind("\xFF\xDA"), good.size() - 2 - good.rfind("\xFF\xDA"));
  std::string endless = good.substr(0, good.size() - 2);
  for (int i = 0; i < 600; ++i) endless += scan;
  EXPECT_EQ(error_decoding(endless + "\xFF\xD9"),
            "p: it has more than 500 scans; accepted: a whole PNG or JPEG file");
}

class HostilePicture : public testing::Test {
 protected:
  static void expect_harmless(const std::function<void(const test::TakeFile&)>& for_each_file) {
    EXPECT_EXIT(
        test::exit_after_reading(
            for_each_file, [](const std::string& file) { static_cast<void>(planes_of(file, 3)); }),
        testing::ExitedWithCode(0), "");
  }
};

TEST_F(HostilePicture, IsHarmlessCutAnywhereAndWithAnyByteChanged) {
  for (const std::string& good :
       {png(3, 2, raw({0, 1, 2, 3, 0, 40, 50, 255})),
        png(2, 1, raw({0, 1, 0}),
            {.colour = 3, .more = png_chunk("PLTE", raw({1, 2, 3, 4, 5, 6}))}),
        jpeg()}) {
    expect_harmless([&](const auto& take) { test::for_each_cut(good, take); });
    expect_harmless([&](const auto& take) { test::for_each_changed_byte(good, take); });
    test::for_each_cut(good, [](const std::string& file) {
      ASSERT_THAT(error_decoding(file), StartsWith("p: ")) << file.size();
    });
  }
}

class ImageFolder : public testing::Test {
 protected:
  void grey(const std::string& name, int value) const {
    folder_.write(name, png(2, 1, raw({0, value, value})));
  }
  // Makes the folders that lead to it, too.
  void make(const std::string& name, int value = 1) const {
    fs::create_directories((folder_.path() / name).parent_path());
    grey(name, value);
  }
  static DataSets normalised(DataSets data) {
    normalise(data);
    return data;
  }
  [[nodiscard]] DataSets read() const { return read_image_folder(folder_.path()); }
  [[nodiscard]] std::string error() const {
    return error_of([&] { return read(); });
  }
  // The first pixel and the class of each image.
  static std::vector<std::pair<int, std::int64_t>> images_of(const SampleSet& set) {
    std::vector<std::pair<int, std::int64_t>> images;
    for (std::int64_t i = 0; i < set.size(); ++i) {
      std::int64_t label = 0;
      read_numbers(set.targets.type(), set.target(i), &label);
      images.emplace_back(static_cast<unsigned char>(set.input(i)[0]), label);
    }
    return images;
  }

  test::TempFolder folder_;
};

using Images = std::vector<std::pair<int, std::int64_t>>;

// As torchvision's ImageFolder numbers them.
TEST_F(ImageFolder, HasAClassForEachFolder) {
  fs::create_directories(folder_.path() / "cat/more");
  fs::create_directories(folder_.path() / "Dog");
  fs::create_directories(folder_.path() / ".ipynb_checkpoints");
  grey("cat/b.png", 1);
  grey("cat/a10.PNG", 2);
  grey("cat/a9.png", 3);
  grey("cat/more/a.png", 4);
  grey("Dog/z.jpg", 5);
  folder_.write("Dog/notes.txt", "nothing");
  // A link that leads back.
  fs::create_directory_symlink(folder_.path() / "cat", folder_.path() / "cat/again");
  const DataSets data = read();
  EXPECT_THAT(data.class_names, ElementsAre("Dog", "cat"));
  EXPECT_EQ(data.classes, 2);
  EXPECT_EQ(data.inputs, InputKind::pixels);
  EXPECT_THAT(data.train.inputs.shape(), ElementsAre(1, 1, 2));
  EXPECT_EQ(images_of(data.train), (Images{{5, 0}, {2, 1}, {3, 1}, {1, 1}, {4, 1}}));
  EXPECT_THAT(data.notes, ElementsAre("files that are not called .png, .jpg or .jpeg: 1"));
  EXPECT_FALSE(data.test);
}

TEST_F(ImageFolder, MayHavePartsForTrainingAndTest) {
  for (const char* const part : {"train/a", "train/b", "val/b"}) {
    fs::create_directories(folder_.path() / part);
  }
  grey("train/a/1.png", 1);
  grey("train/b/2.png", 2);
  grey("val/b/3.png", 3);
  EXPECT_EQ(images_of(read().train), (Images{{1, 0}, {2, 1}}));
  EXPECT_EQ(images_of(*read().test), (Images{{3, 1}}));
  fs::create_directories(folder_.path() / "test/a");
  grey("test/a/4.png", 4);
  EXPECT_EQ(images_of(*read().test), (Images{{4, 0}}));
  EXPECT_THAT(read().notes, ElementsAre("not used: val"));
  fs::create_directories(folder_.path() / "test/c");
  grey("test/c/4.png", 4);
  EXPECT_THAT(error(), HasSubstr("test/c: is not a class; accepted: a folder for each of 'a, b'"));
}

// A train among other vehicles, which have no sub-folders in common.
TEST_F(ImageFolder, MayHaveAClassThatIsCalledLikeAPart) {
  for (const char* const name : {"bus/1.png", "train/1.png", "test/1.png"}) make(name);
  EXPECT_THAT(read().class_names, ElementsAre("bus", "test", "train"));
}

// As public collections call them; two such folders used to be two classes.
TEST_F(ImageFolder, HasPartsOfAnyUsualName) {
  const std::vector<std::pair<std::string, std::string>> usual{
      {"Training", "Testing"},
      {"Train", "Test"},
      {"training_set", "test_set"},
      {"train", "Test"},
      {"TRAIN", "Validation"},
      {"train-images", "val images"},
      {"seg_train/seg_train", "seg_test/seg_test"},
      {"train2017", "val2017"},
      {"trainset", "Valid"},
      {"training data", "dev"}};
  for (const auto& [train, test] : usual) {
    fs::remove_all(folder_.path());
    make(train + "/a/1.png", 1);
    make(train + "/b/2.png", 2);
    make(test + "/b/3.png", 3);
    const DataSets data = read();
    EXPECT_THAT(data.class_names, ElementsAre("a", "b")) << train;
    EXPECT_EQ(images_of(data.train), (Images{{1, 0}, {2, 1}})) << train;
    ASSERT_TRUE(data.test) << test;
    EXPECT_EQ(images_of(*data.test), (Images{{3, 1}})) << test;
    // What is neither is not a class, either.
    make("pred/4.png", 4);
    EXPECT_THAT(read().class_names, ElementsAre("a", "b")) << train;
    EXPECT_THAT(read().notes, ElementsAre("not used: pred"));
  }
  make("train/a/1.png", 1);
  make("train/b/2.png", 2);
  EXPECT_THAT(error(),
              HasSubstr("train and training data are both of training images; accepted: "));
}

// Nobody can know which of them to train on.
TEST_F(ImageFolder, RefusesASplitWhoseNamesSayNothing) {
  for (const char* const name :
       {"fold1/a/1.png", "fold1/b/2.png", "fold2/a/3.png", "fold2/b/4.png"}) {
    make(name);
  }
  EXPECT_THAT(error(),
              HasSubstr("'fold1, fold2' all have the sub-folders 'a, b', as the parts of a "
                        "split have; accepted: "));
  make("fold1/c/1.png");
  EXPECT_THAT(read().class_names, ElementsAre("fold1", "fold2"));
  fs::remove_all(folder_.path());
  // As Tiny ImageNet has them.
  make("n1/images/1.png");
  make("n2/images/1.png");
  EXPECT_THAT(read().class_names, ElementsAre("n1", "n2"));
}

// As Kaggle gives test sets: their labels are its own.
TEST_F(ImageFolder, SaysThatATestFolderHasNoLabels) {
  make("train/a/1.png", 1);
  make("train/b/2.png", 2);
  make("test/3.png", 3);
  const DataSets data = read();
  EXPECT_FALSE(data.test);
  EXPECT_THAT(data.notes,
              ElementsAre("not tested on: test, whose images are in no folders of classes"));
  const DataRecord record = record_of(normalised(data), "images");
  EXPECT_EQ(images_of(read_new_images(folder_.path(), record, false)), (Images{{3, 0}}));
  EXPECT_THAT(
      error_of([&] { return read_new_images(folder_.path(), record, true); }),
      HasSubstr("test: its images are in no folders of classes; accepted: a folder with a"));
  make("val/a/4.png", 4);
  EXPECT_EQ(images_of(*read().test), (Images{{4, 0}}));
}

TEST_F(ImageFolder, NamesSamplesByTheirFiles) {
  make("train/a/1.png", 1);
  make("train/b/more/2.png", 2);
  make("test/b/3.png", 3);
  DataSets data = read();
  EXPECT_THAT(data.train.sample_names(), ElementsAre("train/a/1.png", "train/b/more/2.png"));
  EXPECT_THAT(data.test->sample_names(), ElementsAre("test/b/3.png"));
  hold_out(data, 0.5, 0);
  EXPECT_EQ(data.test->sample_names().size(), 1U);
  EXPECT_NE(data.test->sample_names(), data.train.sample_names());
}

// Depths in millimetres and numbers of objects are stored so; their higher bytes are 0.
TEST_F(ImageFolder, RefusesSixteenBitsThatWouldBeBlack) {
  const auto deep = [&](const std::string& name, std::initializer_list<int> bytes) {
    fs::create_directories((folder_.path() / name).parent_path());
    folder_.write(name, png(2, 1, raw(bytes), {.bits = 16}));
  };
  deep("a/1.png", {0, 0, 0, 0, 255});
  deep("b/2.png", {0, 0, 3, 0, 4});
  EXPECT_THAT(error(),
              HasSubstr("a: images of 16 bits have no value above 255, and would be black, "
                        "as their higher 8 bits are taken; accepted: images of 8 bits"));
  deep("b/2.png", {0, 0, 3, 1, 0});
  EXPECT_EQ(images_of(read().train), (Images{{0, 0}, {0, 1}}));
  EXPECT_THAT(read().notes, ElementsAre("images of 16 bits have no value above 256, so 2 levels "
                                        "are left of the higher 8 bits"));
  deep("b/2.png", {0, 200, 3, 1, 0});
  EXPECT_THAT(read().notes, ElementsAre());
  deep("a/1.png", {0, 0, 0, 0, 0});
  deep("b/2.png", {0, 0, 0, 0, 0});
  EXPECT_EQ(error(), "no error") << "they are black";
}

TEST_F(ImageFolder, HasColoursWhereOneImageHasThem) {
  fs::create_directories(folder_.path() / "a");
  grey("a/1.png", 7);
  folder_.write("a/2.png", png(2, 1, raw({0, 1, 2, 3, 4, 5, 6}), {.colour = 2}));
  const DataSets data = read();
  EXPECT_THAT(data.train.inputs.shape(), ElementsAre(3, 1, 2));
  EXPECT_EQ(data.train.input(0), raw({7, 7, 7, 7, 7, 7}));
  EXPECT_EQ(data.train.input(1), raw({1, 4, 2, 5, 3, 6}));
  grey("a/3.png", 8);
  EXPECT_THAT(read().train.inputs.shape(), ElementsAre(3, 1, 2)) << "whichever comes last";
}

TEST_F(ImageFolder, SaysWhatItLacks) {
  EXPECT_THAT(error(),
              HasSubstr(": it has no sub-folders; accepted: a folder with a sub-folder of"));
  fs::create_directories(folder_.path() / "a");
  EXPECT_THAT(error(), HasSubstr("/a: it has no PNG or JPEG file"));
  grey("a/1.png", 7);
  folder_.write("a/2.jpg", jpeg());
  EXPECT_THAT(error(), AllOf(HasSubstr("a/2.jpg: 16 x 16 pixels, and "),
                             HasSubstr("a/1.png has 1 x 2; accepted: images of one size")));
  folder_.write("a/2.jpg", "GIF89a");
  EXPECT_THAT(error(), HasSubstr("a/2.jpg: it is neither PNG nor JPEG"));
  fs::create_directories(folder_.path() / "\xFF");
  EXPECT_THAT(error(), HasSubstr("the name of class 2 is not in UTF-8"));
  EXPECT_THAT(error_of([&] { return read_image_folder(folder_.path() / "a/1.png"); }),
              HasSubstr("1.png: is not a folder"));
}

TEST_F(ImageFolder, IsReadAgainByItsRecord) {
  for (const char* const name : {"old/a", "old/b", "new/b", "flat"}) {
    fs::create_directories(folder_.path() / name);
  }
  grey("old/a/1.png", 1);
  grey("old/b/2.png", 2);
  grey("new/b/3.png", 3);
  grey("flat/4.png", 4);
  DataSets data = read_image_folder(folder_.path() / "old");
  normalise(data);
  const std::string json = to_json(record_of(data, "images"));
  const DataRecord record = parse_data_record(json, "data.json");
  EXPECT_EQ(to_json(record), json);
  EXPECT_THAT(record.class_names, ElementsAre("a", "b"));
  const auto images = [&](const char* name, bool labels) {
    return images_of(read_new_images(folder_.path() / name, record, labels));
  };
  EXPECT_EQ(images("new", true), (Images{{3, 1}})) << "b is the class that it was";
  EXPECT_EQ(images("flat", false), (Images{{4, 0}}));
  folder_.write("flat/4.png", png(2, 1, raw({0, 1, 2, 3, 4, 5, 6}), {.colour = 2}));
  EXPECT_THAT(error_of([&] { images("flat", false); }),
              HasSubstr("4.png: 1 x 2 pixels in colours; accepted: 1 x 2 in grey"));
}

}  // namespace
}  // namespace rubato
