// Sets of samples, however they lie: CIFAR-10, texts, IDX files, and the share that is held out.

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/images.hpp>

#include "data/archive_files.hpp"
#include "data/idx_files.hpp"
#include "data/input_of.hpp"
#include "loop/data/data_files.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::tokens_of;

std::int64_t class_of(const SampleSet& set, std::int64_t i) {
  std::int64_t value = 0;
  read_numbers(set.targets.type(), set.target(i), &value);
  return value;
}

class Cifar10 : public testing::Test {
 protected:
  Cifar10() {
    for (int batch = 1; batch <= 5; ++batch) {
      write("data_batch_" + std::to_string(batch) + ".bin", {batch, batch + 1});
    }
    write("test_batch.bin", {9});
  }
  // An image for each class, each channel of one value: class, class + 50 and class + 100.
  void write(const std::string& name, const std::vector<int>& classes) const {
    std::string bytes;
    for (const int value : classes) {
      bytes += static_cast<char>(value);
      for (const int offset : {0, 50, 100}) bytes.append(1024, static_cast<char>(value + offset));
    }
    folder_.write(name, bytes);
  }
  std::string error() const {
    return error_of([&] { return read_cifar10(folder_.path()); });
  }

  test::TempFolder folder_;
};

TEST_F(Cifar10, HasTheImagesOfAllBatchesInTheirOrder) {
  DataSets data = read_cifar10(folder_.path());
  EXPECT_EQ(data.train.size(), 10);
  EXPECT_EQ(data.test->size(), 1);
  EXPECT_THAT(data.train.inputs.shape(), ElementsAre(3, 32, 32));
  std::vector<std::int64_t> classes;
  for (std::int64_t i = 0; i < 10; ++i) {
    classes.push_back(class_of(data.train, i));
    EXPECT_EQ(data.train.input(i)[0], classes.back());
    EXPECT_EQ(data.train.input(i)[3071], static_cast<char>(classes.back() + 100));
  }
  EXPECT_THAT(classes, ElementsAre(1, 2, 2, 3, 3, 4, 4, 5, 5, 6));
  // Each channel by its own mean, 3.5, 53.5 and 103.5.
  normalise(data);
  ASSERT_EQ(data.channels.size(), 3);
  EXPECT_DOUBLE_EQ(data.channels[1].mean, 53.5 / 255);
  std::vector<float> values(3072);
  InputReader(data).read(data.train.input(0), values.data());
  EXPECT_FLOAT_EQ(values[0], values[1024]);
  EXPECT_FLOAT_EQ(values[0], values[3071]);
  EXPECT_LT(values[0], -1);
}

TEST_F(Cifar10, SaysWhichFileIsMissingOrWrong) {
  write("data_batch_3.bin", {1, 10});
  EXPECT_THAT(error(), HasSubstr("training images: sample 6 is of class 10; accepted: 0 to 9"));
  folder_.write("data_batch_3.bin", "short");
  EXPECT_THAT(error(), HasSubstr("data_batch_3.bin: 5 bytes; accepted: 3073 for each"));
  std::filesystem::remove(folder_.path() / "data_batch_3.bin");
  EXPECT_THAT(error(), HasSubstr("data_batch_3.bin: No such file or directory; accepted: "));
}

TEST(TextSamples, ForetellTheNextCharacter) {
  const test::TempFolder folder;
  const DataSets data = read_text_samples(folder.write("text",
                                                       "abca\xC3\xA9"
                                                       "bcab"),
                                          {.length = 3});
  EXPECT_EQ(data.classes, 4) << "a, b, c and e with an acute accent";
  EXPECT_EQ(data.inputs, InputKind::tokens);
  EXPECT_EQ(data.vocabulary, data.classes);
  ASSERT_EQ(data.train.size(), 2);
  EXPECT_THAT(tokens_of(data.train.inputs, 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(tokens_of(data.train.targets, 0), ElementsAre(1, 2, 0));
  EXPECT_THAT(tokens_of(data.train.inputs, 1), ElementsAre(0, 3, 1));
  EXPECT_THAT(tokens_of(data.train.targets, 1), ElementsAre(3, 1, 2));
}

// The squares of so many white pixels are more than 32 bits hold.
TEST(Normalise, CountsLargeImages) {
  constexpr std::int64_t kLong = 300;
  DataSets data{.train = sample_set_of({.count = 2,
                                        .height = kLong,
                                        .width = kLong,
                                        .pixels = std::vector<std::uint8_t>(2 * kLong * kLong, 255),
                                        .labels = {0, 1}}),
                .inputs = InputKind::pixels,
                .classes = 2};
  normalise(data);
  EXPECT_EQ(data.channels.at(0).mean, 1);
  EXPECT_EQ(data.channels.at(0).deviation, 0);
}

// A channel that is the same everywhere has no deviation to be divided by.
TEST(Pixels, OfOneValueBecomeZero) {
  const test::TempFolder folder;
  DataSets data = read_tensor_samples(
      folder.write("f", test::zip_of({{"x.npy", test::npy_of<std::uint8_t>(
                                                    "|u1", {2, 2, 1, 2}, {7, 7, 1, 2, 7, 7, 3, 4})},
                                      {"y.npy", test::npy_of<std::int64_t>("<i8", {2}, {0, 1})}})));
  normalise(data);
  EXPECT_EQ(data.channels[0].deviation, 0);
  std::vector<float> values(4);
  InputReader(data).read(data.train.input(1), values.data());
  EXPECT_EQ(values[0], 0);
  EXPECT_EQ(values[1], 0);
  EXPECT_GT(values[3], values[2]);
}

// A mark is no character, also where texts were joined.
TEST(TextSamples, LeaveByteOrderMarksOut) {
  const test::TempFolder folder;
  const std::string mark = "\xEF\xBB\xBF";
  const DataSets data =
      read_text_samples(folder.write("text", mark + mark + "ab" + mark + "ab"), {.length = 3});
  EXPECT_EQ(data.vocabulary, 2);
  EXPECT_THAT(tokens_of(data.train.inputs, 0), ElementsAre(0, 1, 0));
}

TEST(TextSamples, AreNotInUtf16) {
  const test::TempFolder folder;
  using namespace std::string_literals;
  for (const std::string& text : {"\xFF\xFE"s + "a\0b\0,\0"s, "\xFE\xFF\0a\0b"s, "a\0b\0"s}) {
    const auto file = folder.write("text", text);
    const std::string expected = "text: it is in UTF-16; accepted: a text in UTF-8";
    EXPECT_THAT(error_of([&] { return read_text_samples(file, {.length = 1}); }),
                HasSubstr(expected));
    EXPECT_THAT(error_of([&] { return read_csv_samples(file, {}); }), HasSubstr(expected));
  }
  EXPECT_THAT(
      error_of([&] { return read_csv_samples(folder.write("t", "a,y\n1,0\ncaf\xE9,1\n"), {}); }),
      HasSubstr("t:3: byte 4 of the row belongs to no character; accepted: a table in UTF-8"));
}

TEST(TextSamples, SaysWhereATextIsNone) {
  const test::TempFolder folder;
  const auto error = [&](const std::string& text) {
    return error_of([&] { return read_text_samples(folder.write("text", text), {.length = 2}); });
  };
  EXPECT_EQ(error("abc"), "no error");
  EXPECT_THAT(error("ab"), HasSubstr("2 characters make no sample; accepted: at least 3"));
  EXPECT_THAT(error(""), HasSubstr("0 characters make no sample"));
  for (const std::string wrong : {"\x80", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80",
                                  "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3", "\xE2\x82"}) {
    EXPECT_THAT(error("ab" + wrong), HasSubstr("byte 3 belongs to no character")) << wrong;
  }
}

class IdxSamples : public test::IdxFiles {};

// Raw files are mapped, and give what reading them gives.
TEST_F(IdxSamples, AreTheSameMappedAndRead) {
  const std::string names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                               "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
  const test::Bytes files[] = {test::image_bytes(7, 2, 3), test::label_bytes(7),
                               test::image_bytes(4, 2, 3), test::label_bytes(4)};
  for (int i = 0; i < 4; ++i) write(names[i], files[i]);
  const DataSets mapped = read_idx_samples(folder());
  const std::string raw = fingerprint_of(mapped.train);
  EXPECT_EQ(fingerprint_of(sample_set_of(read_idx_folder(folder()).train)), raw);
  for (int i = 0; i < 4; ++i) {
    // A file that is mapped must not be cut.
    std::filesystem::remove(folder() / names[i]);
    write(names[i], test::gzipped(files[i]));
  }
  EXPECT_EQ(fingerprint_of(read_idx_samples(folder()).train), raw);
  EXPECT_THAT(mapped.train.inputs.shape(), ElementsAre(1, 2, 3));
  EXPECT_EQ(mapped.train.input(6)[5], 41) << "of a file that has no name any more";
}

// EMNIST's letters are numbered from 1.
TEST_F(IdxSamples, HaveAsManyClassesAsTheLabelsHave) {
  const auto write_part = [&](const std::string& part, const std::vector<std::uint8_t>& labels) {
    const auto count = static_cast<std::uint32_t>(labels.size());
    write(part + "-images-idx3-ubyte", test::image_bytes(count, 2, 3));
    write(part + "-labels-idx1-ubyte", test::idx_bytes({0x801, count}, labels));
  };
  std::vector<std::uint8_t> letters(26);
  std::iota(letters.begin(), letters.end(), 1);
  write_part("train", letters);
  write_part("t10k", {26, 1});
  const DataSets data = read_idx_samples(folder());
  EXPECT_EQ(data.classes, 27);
  EXPECT_THAT(data.notes, ElementsAre("no training sample is of class 0, as if labels began at 1"));
  write_part("train", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  write_part("t10k", {9});
  EXPECT_THAT(read_idx_samples(folder()).notes, ElementsAre());
  write_part("t10k", {11});
  EXPECT_EQ(read_idx_samples(folder()).classes, 12) << "those of the test set, too";
  write_part("t10k", {9});
  write_part("train", {3, 7});
  EXPECT_EQ(read_idx_samples(folder()).classes, 10) << "as MNIST has";
  EXPECT_THAT(read_idx_samples(folder()).notes,
              ElementsAre("8 of the classes have no training sample, such as 0"));
}

TEST(SingleClass, IsNoted) {
  const auto notes_of = [](std::vector<std::uint8_t> labels) {
    const std::size_t count = labels.size();
    DataSets data{.train = sample_set_of({.count = static_cast<std::int64_t>(count),
                                          .height = 1,
                                          .width = 1,
                                          .pixels = std::vector<std::uint8_t>(count),
                                          .labels = std::move(labels)})};
    note_single_class(data);
    return data.notes;
  };
  EXPECT_THAT(notes_of({4, 4, 4}), ElementsAre("all training samples are of one class"));
  EXPECT_THAT(notes_of({4, 4, 5}), ElementsAre());
}

TEST_F(IdxSamples, AreRefusedAsTheFilesAre) {
  const auto error = [&] { return error_of([&] { return read_idx_samples(folder()); }); };
  const test::Bytes images = test::image_bytes(3, 2, 4);
  write("train-labels-idx1-ubyte", test::label_bytes(3));
  write("t10k-images-idx3-ubyte", images);
  write("t10k-labels-idx1-ubyte", test::label_bytes(3));
  for (std::size_t length = 0; length < images.size(); ++length) {
    write("train-images-idx3-ubyte", {images.begin(), images.begin() + static_cast<int>(length)});
    EXPECT_THAT(error(), HasSubstr("train-images-idx3-ubyte: truncated")) << length;
  }
  test::Bytes longer = images;
  longer.push_back(0);
  write("train-images-idx3-ubyte", longer);
  EXPECT_THAT(error(), HasSubstr("longer than its header says"));
  write("train-images-idx3-ubyte", test::image_bytes(2, 2, 4));
  EXPECT_THAT(error(), HasSubstr("holds 2 images, but"));
}

DataSets hundred() {
  NumberArray x{.type = ElementType::u8, .shape = {100, 1}};
  const auto bytes = std::make_shared<std::string>(100, '\0');
  for (int i = 0; i < 100; ++i) (*bytes)[static_cast<std::size_t>(i)] = static_cast<char>(i);
  x.bytes = *bytes;
  x.owner = bytes;
  return {.train = {.inputs = SampleRows(x), .targets = SampleRows(x).reshaped({})}};
}

std::set<std::int64_t> held_by(double share, std::uint64_t seed) {
  DataSets data = hundred();
  hold_out(data, share, seed);
  EXPECT_EQ(data.train.size() + data.test->size(), 100);
  std::set<std::int64_t> train;
  for (std::int64_t i = 0; i < data.train.size(); ++i) train.insert(class_of(data.train, i));
  std::set<std::int64_t> test;
  for (std::int64_t i = 0; i < data.test->size(); ++i) test.insert(class_of(*data.test, i));
  EXPECT_EQ(test.size(), static_cast<std::size_t>(data.test->size()));
  for (const std::int64_t sample : test) EXPECT_FALSE(train.contains(sample));
  return test;
}

TEST(HoldOut, TakesAShareAwayThatFollowsFromTheSeedAlone) {
  const auto quarter = held_by(0.25, 0);
  EXPECT_EQ(quarter.size(), 25);
  EXPECT_EQ(held_by(0.25, 0), quarter);
  EXPECT_NE(held_by(0.25, 1), quarter);
  EXPECT_GT(*quarter.rbegin() - *quarter.begin(), 50) << "it is no run of samples";
  EXPECT_EQ(error_of([] { held_by(0.001, 0); }),
            "0.001 of 100 samples leaves none to test on; accepted: a share of at least 1 "
            "sample and at most 99");
  EXPECT_THAT(error_of([] { held_by(0.999, 0); }), HasSubstr("leaves none to train on"));
}

TEST(Fingerprint, SeesEverySampleTheirTypeAndTheirShape) {
  const auto of = [](const std::vector<float>& x, std::vector<std::int64_t> shape,
                     const std::vector<std::int64_t>& y) {
    const test::TempFolder folder;
    return fingerprint_of(
        read_tensor_samples(
            folder.write("f", test::zip_of({{"x.npy", test::npy_of("<f4", shape, x)},
                                            {"y.npy", test::npy_of("<i8", {2}, y)}})))
            .train);
  };
  const std::string good = of({1, 2, 3, 4}, {2, 2}, {0, 1});
  EXPECT_EQ(of({1, 2, 3, 4}, {2, 2}, {0, 1}), good);
  EXPECT_NE(of({1, 2, 3, 5}, {2, 2}, {0, 1}), good);
  EXPECT_NE(of({1, 2, 3, 4}, {2, 2, 1}, {0, 1}), good);
  EXPECT_NE(of({1, 2, 3, 4}, {2, 2}, {0, 0}), good);
}

}  // namespace
}  // namespace rubato
