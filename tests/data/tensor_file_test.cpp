// Files of numpy.savez() and torch.save(): what they hold, and what hostile ones do.

#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/mman.h>

#include "data/archive_files.hpp"
#include "fuzz/read_samples.hpp"
#include "loop/data/data_files.hpp"
#include "loop/data/tensors/saved_tensors.hpp"
#include "loop/data/tensors/zip_archive.hpp"
#include "support/damaged_files.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/sizes.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::npy_of;
using test::zip_of;

class TensorFile : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& bytes) const {
    return folder_.write("file", bytes);
  }
  std::map<std::string, NumberArray> read(const std::string& bytes) const {
    return read_tensor_file(write(bytes));
  }
  std::string error(const std::string& bytes) const {
    return error_of([&] { return read_tensor_samples(write(bytes)); });
  }

  test::TempFolder folder_;
};

std::vector<double> numbers_of(const NumberArray& array) {
  std::vector<double> numbers(array.bytes.size() / size_of(array.type));
  read_numbers(array.type, array.bytes, numbers.data());
  return numbers;
}

const std::vector<float> kSix{1, 2, 3, 4, 5, 6.5};

TEST_F(TensorFile, HasTheArraysOfNumpy) {
  for (const bool packed : {false, true}) {
    const auto arrays =
        read(zip_of({{"x.npy", npy_of("<f4", {3, 2}, kSix)},
                     {"y.npy", npy_of<std::int64_t>("<i8", {3}, {2, 0, 1})},
                     {"columns.npy", npy_of("<f4", {3, 2}, kSix, /*column_major=*/true)},
                     {"notes.txt", "not an array"}},
                    packed));
    ASSERT_EQ(arrays.size(), 3);
    EXPECT_EQ(arrays.at("x").type, ElementType::f32);
    EXPECT_THAT(arrays.at("x").shape, ElementsAre(3, 2));
    EXPECT_THAT(numbers_of(arrays.at("x")), ElementsAre(1, 2, 3, 4, 5, 6.5));
    EXPECT_THAT(numbers_of(arrays.at("y")), ElementsAre(2, 0, 1));
    EXPECT_THAT(numbers_of(arrays.at("columns")), ElementsAre(1, 4, 2, 5, 3, 6.5));
  }
}

TEST_F(TensorFile, HasNumbersOfEveryType) {
  const auto arrays =
      read(zip_of({{"f8.npy", npy_of<double>("<f8", {2}, {0.5, -3})},
                   // 1.5, the smallest subnormal number, and the largest number.
                   {"f2.npy", npy_of<std::uint16_t>("<f2", {3}, {0x3E00, 0x0001, 0x7BFF})},
                   {"i4.npy", npy_of<std::int32_t>("<i4", {2}, {-7, 1 << 30})},
                   {"i2.npy", npy_of<std::int16_t>("<i2", {1}, {-300})},
                   {"i1.npy", npy_of<std::int8_t>("|i1", {1}, {-3})},
                   {"u1.npy", npy_of<std::uint8_t>("|u1", {1}, {200})},
                   {"b1.npy", npy_of<std::uint8_t>("|b1", {3}, {0, 1, 7})}}));
  EXPECT_THAT(numbers_of(arrays.at("f8")), ElementsAre(0.5, -3));
  EXPECT_THAT(numbers_of(arrays.at("f2")), ElementsAre(1.5, std::ldexp(1, -24), 65504));
  EXPECT_THAT(numbers_of(arrays.at("i4")), ElementsAre(-7, 1 << 30));
  EXPECT_THAT(numbers_of(arrays.at("i2")), ElementsAre(-300));
  EXPECT_THAT(numbers_of(arrays.at("i1")), ElementsAre(-3));
  EXPECT_THAT(numbers_of(arrays.at("u1")), ElementsAre(200));
  EXPECT_THAT(numbers_of(arrays.at("b1")), ElementsAre(0, 1, 1));
}

TEST_F(TensorFile, HasTheTensorsOfTorch) {
  const auto arrays =
      read(zip_of(test::torch_records({{"x", "Float", "0", 0, {3, 2}, {2, 1}},
                                       {"transposed", "Float", "0", 0, {2, 3}, {1, 2}},
                                       {"part", "Float", "0", 1, {2}, {3}},
                                       {"y", "Long", "1", 0, {3}, {1}},
                                       {"brain", "BFloat16", "2", 0, {1}, {1}}},
                                      {{"0", test::bytes_of(kSix)},
                                       {"1", test::bytes_of<std::int64_t>({2, 0, 1})},
                                       {"2", test::bytes_of<std::uint16_t>({0x3FC0})}})));
  EXPECT_THAT(numbers_of(arrays.at("x")), ElementsAre(1, 2, 3, 4, 5, 6.5));
  EXPECT_THAT(numbers_of(arrays.at("transposed")), ElementsAre(1, 3, 5, 2, 4, 6.5));
  EXPECT_THAT(numbers_of(arrays.at("part")), ElementsAre(2, 5));
  EXPECT_THAT(numbers_of(arrays.at("y")), ElementsAre(2, 0, 1));
  EXPECT_THAT(numbers_of(arrays.at("brain")), ElementsAre(1.5));
}

// PyTorch 2 writes torch.conj(z).imag so.
TEST_F(TensorFile, HasTheSignsOfNegatedTensors) {
  const std::vector<test::Record> storages{{"0", test::bytes_of<float>({1, -2, 0.5F})},
                                           {"1", test::bytes_of<std::int64_t>({2})},
                                           {"2", test::bytes_of<std::uint16_t>({0x3E00, 0xBE00})}};
  const auto arrays = read(zip_of(test::torch_records({{"x", "Float", "0", 0, {3}, {1}, {"neg"}},
                                                       {"plain", "Float", "0", 0, {3}, {1}},
                                                       {"half", "Half", "2", 0, {2}, {1}, {"neg"}}},
                                                      storages)));
  EXPECT_THAT(numbers_of(arrays.at("x")), ElementsAre(-1, 2, -0.5));
  EXPECT_THAT(numbers_of(arrays.at("plain")), ElementsAre(1, -2, 0.5));
  EXPECT_THAT(numbers_of(arrays.at("half")), ElementsAre(-1.5, 1.5));
  EXPECT_THAT(
      error(zip_of(test::torch_records({{"x", "Float", "0", 0, {3}, {1}, {"conj"}}}, storages))),
      HasSubstr("'x' has metadata 'conj', which change its numbers; accepted: torch.save("));
  EXPECT_THAT(
      error(zip_of(test::torch_records({{"x", "Long", "1", 0, {1}, {1}, {"neg"}}}, storages))),
      HasSubstr("'x' has metadata 'neg'"));
}

TEST_F(TensorFile, TakesTheLastOfTwoMembersWithOneName) {
  const auto arrays = read(zip_of(
      {{"x.npy", npy_of<float>("<f4", {1}, {1})}, {"x.npy", npy_of<float>("<f4", {1}, {2})}}));
  EXPECT_THAT(numbers_of(arrays.at("x")), ElementsAre(2)) << "as numpy does";
  EXPECT_THAT(error(zip_of({{"train/x.npy", npy_of<float>("<f4", {1}, {1})},
                            {"test/x.npy", npy_of<float>("<f4", {1}, {2})}})),
              HasSubstr("its records 'train/x.npy' and 'test/x.npy' differ only in a folder"));
}

TEST_F(TensorFile, HasInputsAndTargetsByTheNamesThatAreUsual) {
  const auto x = npy_of("<f4", {3, 2}, kSix);
  const auto y = npy_of<std::int64_t>("<i8", {3}, {1, 0, 1});
  const auto zeros = npy_of<std::int64_t>("<i8", {3}, {0, 0, 0});
  const auto data = [&](const std::vector<test::Record>& records,
                        const TensorOptions& options = {}) {
    return read_tensor_samples(write(zip_of(records)), options);
  };
  const DataSets keras =
      data({{"x_train.npy", x}, {"y_train.npy", y}, {"x_test.npy", x}, {"y_test.npy", y}});
  EXPECT_EQ(keras.classes, 2);
  EXPECT_TRUE(keras.test.has_value());
  EXPECT_THAT(keras.notes, ElementsAre());
  EXPECT_EQ(data({{"arr_0.npy", x}, {"arr_1.npy", y}}).train.size(), 3);
  EXPECT_TRUE(data({{"X.npy", x}, {"y.npy", y}, {"X_test.npy", x}, {"Y_test.npy", y}}).test);
  EXPECT_EQ(data({{"x.npy", x}, {"y.npy", y}, {"x_train.npy", zeros}}).train.inputs.elements(), 2);
  // What is not used need not be an array of numbers, and is named.
  const DataSets named = data({{"images.npy", x},
                               {"labels.npy", y},
                               {"names.npy", npy_of<std::int32_t>("<U5", {0}, {})},
                               {"y.npy", zeros}},
                              {.x = "images", .y = "labels"});
  EXPECT_EQ(named.classes, 2);
  EXPECT_THAT(named.notes, ElementsAre("not used: names, y"));
  const DataSets torch = read_tensor_samples(write(zip_of(test::torch_records(
      {{"x", "Float", "0", 0, {3, 2}, {2, 1}},
       {"y", "Long", "1", 0, {3}, {1}},
       {"notes", "QUInt8", "1", 0, {3}, {1}}},
      {{"0", test::bytes_of(kSix)}, {"1", test::bytes_of<std::int64_t>({1, 0, 1})}}))));
  EXPECT_THAT(torch.notes, ElementsAre("not used: notes"));
  EXPECT_TRUE(
      data({{"x.npy", x}, {"y.npy", y}, {"a.npy", x}, {"b.npy", y}}, {.x_test = "a", .y_test = "b"})
          .test);
  const auto error_with = [&](const TensorOptions& options) {
    return error_of([&] { return data({{"x.npy", x}, {"y.npy", y}}, options); });
  };
  EXPECT_THAT(
      error_with({.x = "images"}),
      HasSubstr("holds x, y, and not 'images'; accepted: x and y, and for a test set x_test "
                "and y_test; x_train and y_train; arr_0 and arr_1; other names by "
                "x=NAME,y=NAME"));
  EXPECT_THAT(error_with({.x_test = "held"}), HasSubstr("and not 'held'"));
}

TEST_F(TensorFile, SaysWhichClassesHaveNoSample) {
  const auto notes_of = [&](const std::vector<std::int64_t>& classes) {
    const auto count = static_cast<std::int64_t>(classes.size());
    return read_tensor_samples(
               write(zip_of(
                   {{"x.npy", npy_of<float>("<f4", {count, 1}, std::vector<float>(classes.size()))},
                    {"y.npy", npy_of("<i8", {count}, classes)}})))
        .notes;
  };
  EXPECT_THAT(notes_of({0, 1, 2}), ElementsAre());
  EXPECT_THAT(notes_of({1, 2, 3}),
              ElementsAre("no training sample is of class 0, as if labels began at 1"));
  EXPECT_THAT(notes_of({0, 2}), ElementsAre("no training sample is of class 1"));
  EXPECT_THAT(notes_of({0, 100}),
              ElementsAre("99 of the classes have no training sample, such as 1"));
}

// As Pillow, OpenCV and TensorFlow have images.
TEST_F(TensorFile, HasImagesWhoseChannelsComeLast) {
  std::vector<std::uint8_t> pixels(std::size_t{2} * 4 * 2 * 3);
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{0});
  const auto y = npy_of<std::int64_t>("<i8", {2}, {0, 1});
  const auto file = write(zip_of({{"x.npy", npy_of("|u1", {2, 4, 2, 3}, pixels)}, {"y.npy", y}}));
  EXPECT_THAT(read_tensor_samples(file).notes,
              ElementsAre("samples of [4, 2, 3] look like images with their channels last, which "
                          "layout=hwc reads"));
  const DataSets data = read_tensor_samples(file, {.layout = ImageLayout::hwc});
  EXPECT_THAT(data.notes, ElementsAre());
  EXPECT_THAT(data.train.inputs.shape(), ElementsAre(3, 4, 2));
  // By numpy: arange(48, dtype="uint8").reshape(2, 4, 2, 3).transpose(0, 3, 1, 2)[1].
  const std::string_view second = data.train.input(1);
  EXPECT_THAT(std::vector<int>(second.begin(), second.end()),
              ElementsAre(24, 27, 30, 33, 36, 39, 42, 45, 25, 28, 31, 34, 37, 40, 43, 46, 26, 29,
                          32, 35, 38, 41, 44, 47));
  const std::vector<float> reals(pixels.begin(), pixels.end());
  EXPECT_THAT(read_tensor_samples(
                  write(zip_of({{"x.npy", npy_of("<f4", {2, 2, 3, 4}, reals)}, {"y.npy", y}})))
                  .notes,
              ElementsAre(HasSubstr("samples of [2, 3, 4] look like images")))
      << "with transparency";
  const auto grey = write(zip_of({{"x.npy", npy_of("|u1", {2, 6, 4}, pixels)}, {"y.npy", y}}));
  EXPECT_THAT(read_tensor_samples(grey).notes, ElementsAre());
  EXPECT_THAT(error_of([&] { return read_tensor_samples(grey, {.layout = ImageLayout::hwc}); }),
              HasSubstr("layout=hwc: samples of 'x' are of shape [6, 4]; accepted: [height, width, "
                        "channels]"));
}

TEST_F(TensorFile, MapsWhatIsStoredInRowMajorOrder) {
  // As large as it is, it is not in memory: all of them share one mapping.
  const std::string archive =
      zip_of({{"x.npy", npy_of("<f4", {3, 2}, kSix)}, {"y.npy", npy_of<float>("<f4", {1}, {1})}});
  const auto arrays = read(archive);
  EXPECT_EQ(arrays.at("x").owner, arrays.at("y").owner);
  EXPECT_EQ(arrays.at("y").bytes.data() - arrays.at("x").bytes.data(),
            static_cast<std::ptrdiff_t>(archive.rfind("\x93NUMPY")) -
                static_cast<std::ptrdiff_t>(archive.find("\x93NUMPY")) -
                (static_cast<std::ptrdiff_t>(npy_of("<f4", {3, 2}, kSix).size() - 24) -
                 static_cast<std::ptrdiff_t>(npy_of<float>("<f4", {1}, {1}).size() - 4)));
}

TEST_F(TensorFile, BecomesSamplesWithClassesOrRealTargets) {
  const auto classes = npy_of<std::int64_t>("<i8", {3}, {2, 0, 1});
  const DataSets plain = read_tensor_samples(
      write(zip_of({{"x.npy", npy_of("<f4", {3, 2}, kSix)}, {"y.npy", classes}})));
  EXPECT_EQ(plain.inputs, InputKind::reals);
  EXPECT_EQ(plain.classes, 3);
  EXPECT_FALSE(plain.test.has_value());
  const DataSets images = read_tensor_samples(
      write(zip_of({{"x.npy", npy_of<std::uint8_t>("|u1", {1, 2, 2}, {0, 1, 2, 3})},
                    {"y.npy", npy_of<std::int32_t>("<i4", {1, 1}, {4})},
                    {"x_test.npy", npy_of<std::uint8_t>("|u1", {1, 2, 2}, {3, 1, 2, 3})},
                    {"y_test.npy", npy_of<std::int32_t>("<i4", {1, 1}, {8})}})));
  EXPECT_EQ(images.inputs, InputKind::pixels);
  EXPECT_THAT(images.train.inputs.shape(), ElementsAre(1, 2, 2));
  EXPECT_THAT(images.train.targets.shape(), ElementsAre());
  EXPECT_EQ(images.classes, 9) << "of both sets";
  ASSERT_TRUE(images.test.has_value());
  const DataSets tokens = read_tensor_samples(
      write(zip_of({{"x.npy", npy_of<std::int64_t>("<i8", {1, 3}, {0, 5, 2})},
                    {"y.npy", npy_of<std::int64_t>("<i8", {1, 3}, {5, 2, 1})}})));
  EXPECT_EQ(tokens.inputs, InputKind::tokens);
  EXPECT_THAT(tokens.train.targets.shape(), ElementsAre(3));
  const DataSets real =
      read_tensor_samples(write(zip_of({{"x.npy", npy_of("<f4", {3, 2}, kSix)},
                                        {"y.npy", npy_of<double>("<f8", {3, 1}, {0.5, 1, 2})}})));
  EXPECT_EQ(real.classes, 0);
}

// PyTorch's mark of targets that do not count.
TEST_F(TensorFile, MayHaveTargetsOfNoClass) {
  const DataSets data = read_tensor_samples(
      write(zip_of({{"x.npy", npy_of("<f4", {3, 2}, kSix)},
                    {"y.npy", npy_of<std::int64_t>("<i8", {3}, {2, -100, 1})}})));
  EXPECT_EQ(data.classes, 3);
  EXPECT_THAT(data.notes, ElementsAre(HasSubstr("no training sample is of class 0")));
}

// -1, 255 and so on are other marks than PyTorch's.
TEST_F(TensorFile, MayHaveTargetsThatTheLossLeavesOut) {
  const auto file = [&](const std::vector<std::int64_t>& classes) {
    return write(
        zip_of({{"x.npy", npy_of("<f4", {3, 2}, kSix)}, {"y.npy", npy_of("<i8", {3}, classes)}}));
  };
  const auto error_with = [&](const std::vector<std::int64_t>& classes,
                              const IgnoredTargets& ignored) {
    return error_of([&] { return read_tensor_samples(file(classes), {.ignored = ignored}); });
  };
  EXPECT_THAT(error_with({1, -1, 0}, {}),
              HasSubstr("sample 2 is of class -1; accepted: 0 to 999999, or --loss "
                        "cross-entropy:ignore=-1"));
  EXPECT_THAT(error_with({1, -1, 0}, {.one = -2}), HasSubstr("of class -1"));
  for (const std::int64_t mark : {-1L, -2L, 255L, 4294967295L}) {
    const DataSets data = read_tensor_samples(file({1, mark, 0}), {.ignored = {.one = mark}});
    EXPECT_EQ(data.classes, 2) << mark;
    EXPECT_THAT(data.notes, ElementsAre()) << mark;
  }
  EXPECT_EQ(error_with({1, -1, -7}, {.negative = true}), "no error");
  EXPECT_THAT(error_with({1, -1, 4294967295}, {.negative = true}), HasSubstr("class 4294967295"));
}

// As numbers they would be the same.
TEST_F(TensorFile, HasNoTokensThatANumberOfTheModelDoesNotHold) {
  const std::int64_t large = 740245381351497730;
  const auto read_as = [&](std::int64_t token, auto number) {
    const DataSets data =
        read_tensor_samples(write(zip_of({{"x.npy", npy_of<std::int64_t>("<i8", {1, 1}, {token})},
                                          {"y.npy", npy_of<std::int64_t>("<i8", {1}, {0})}})));
    return error_of([&] { InputReader(data).read(data.train.input(0), &number); });
  };
  EXPECT_EQ(read_as(large, std::int64_t{}), "no error");
  EXPECT_EQ(read_as((1 << 24) - 1, float{}), "no error");
  EXPECT_THAT(read_as(1 << 24, float{}),
              HasSubstr("a token is 16777216, and the model takes tokens as numbers of 32 bits, "
                        "which hold whole numbers below 16777216; accepted: smaller tokens"));
  EXPECT_EQ(read_as(-(1 << 24), double{}), "no error");
  EXPECT_THAT(read_as(-large, double{}), HasSubstr("numbers of 64 bits"));
}

TEST_F(TensorFile, SaysWhatItsArraysLack) {
  const auto x = npy_of("<f4", {3, 2}, kSix);
  const auto y = npy_of<std::int64_t>("<i8", {3}, {2, 0, 1});
  EXPECT_THAT(error(zip_of({{"x.npy", x}, {"labels.npy", y}})),
              HasSubstr("holds labels, x, and not 'y'; accepted: x and y, and for a test set"));
  EXPECT_THAT(error(zip_of({{"x.npy", x}, {"y.npy", npy_of<std::int64_t>("<i8", {2}, {0, 1})}})),
              HasSubstr("'x' has 3 samples, and 'y' has 2; accepted: as many of both"));
  EXPECT_THAT(error(zip_of({{"x.npy", x}, {"y.npy", y}, {"x_test.npy", x}})),
              HasSubstr("and not 'y_test'"));
  EXPECT_THAT(
      error(zip_of({{"x.npy", x}, {"y.npy", npy_of<std::int64_t>("<i8", {3}, {0, -1, 1})}})),
      HasSubstr("'y': sample 2 is of class -1; accepted: 0 to"));
  EXPECT_THAT(error(zip_of({{"x.npy", npy_of<float>("<f4", {}, {1})}, {"y.npy", y}})),
              HasSubstr("'x' of shape [] holds no sample"));
  EXPECT_THAT(error(zip_of({{"x.npy", npy_of<double>(">f8", {1}, {1})}, {"y.npy", y}})),
              HasSubstr("'x' is of type '>f8'; accepted: float16"));
  EXPECT_THAT(error(zip_of({{"x.npy", x},
                            {"y.npy", y},
                            {"x_test.npy", npy_of<float>("<f4", {1, 3}, {1, 2, 3})},
                            {"y_test.npy", npy_of<std::int64_t>("<i8", {1}, {0})}})),
              HasSubstr("samples of 'x' are F32 of shape [2], those of 'x_test' F32 of [3]"));
  EXPECT_THAT(error(zip_of(test::torch_records({{"x", "Float", "0", 0, {200, 200}, {0, 0}}},
                                               {{"0", test::bytes_of(kSix)}}))),
              HasSubstr("'x' is expanded"));
  EXPECT_THAT(error(zip_of(test::torch_records({{"x", "Float", "0", 2, {3, 2}, {2, 1}}},
                                               {{"0", test::bytes_of(kSix)}}))),
              HasSubstr("'x' reaches beyond its data in the file"));
  EXPECT_THAT(error("nothing of the kind"),
              HasSubstr("it is not a zip archive; accepted: torch.save("));
}

// Replaces a number of four bytes wherever it stands.
std::string with_size(std::string archive, std::uint64_t size, std::uint64_t claimed) {
  const std::string digits = test::little_endian(size, 4);
  for (std::size_t at = 0; (at = archive.find(digits, at)) != std::string::npos; ++at) {
    archive.replace(at, 4, test::little_endian(claimed, 4));
  }
  return archive;
}

// What a header claims is not allocated, and a small file packed many times over is not unpacked
// beyond what its directory says.
TEST_F(TensorFile, RefusesWhatClaimsMoreThanItHolds) {
  EXPECT_THAT(error(zip_of({{"x.npy", npy_of<float>("<f4", {1 << 30, 1 << 30}, {1})}})),
              HasSubstr("'x' is cut off"));
  const std::string zeros =
      npy_of("<f4", {1 << 18}, std::vector<float>(std::size_t{1} << 18U, 0.0F));
  const std::string archive = zip_of({{"x.npy", zeros}}, /*packed=*/true);
  EXPECT_THAT(error(with_size(archive, zeros.size(), zeros.size() - 4)),
              HasSubstr(fmt::format("'x' has {} bytes by its header and claims {}", zeros.size(),
                                    zeros.size() - 4)));
  std::string notes = zip_of({{"notes.txt", std::string(1 << 20, '\0')}}, /*packed=*/true);
  EXPECT_THAT(error(with_size(notes, 1 << 20, 70'000)), HasSubstr("'notes.txt' is damaged"));
}

// Before anything is unpacked: two GiB of it would take seconds.
TEST_F(TensorFile, ComparesSizesBeforeItUnpacks) {
  const std::string x = npy_of("<f4", {3, 2}, kSix);
  const std::string archive = zip_of({{"x.npy", x}}, /*packed=*/true);
  EXPECT_THAT(error(with_size(archive, x.size(), 0xF0000000)),
              HasSubstr("'x' claims 4026531840 bytes, which"));
  // A header of six numbers with ten million zeros behind.
  std::string bomb = x;
  bomb.resize(bomb.size() + 10'000'000);
  EXPECT_THAT(error(zip_of({{"x.npy", bomb}}, /*packed=*/true)),
              HasSubstr("by its header and claims 10000"));
}

// Whatever the machine has: 64 GiB, of which nobody reads anything, could hold 66 TB.
TEST(RecordContents, AreNotUnpackedWhereTheyFitIntoNoMemory) {
  constexpr std::size_t kBytes = std::size_t{1} << 36U;
  void* const packed = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                            -1, /*offset=*/0);
  if (packed == MAP_FAILED) GTEST_SKIP() << "this process may not have as many addresses";
  const ZipRecord record{
      .bytes = {static_cast<const char*>(packed), kBytes}, .deflated = true, .size = kBytes * 1032};
  EXPECT_THAT(error_of([&] { return inflated(record, "x", ""); }), HasSubstr("x, unpacked, needs"));
  // A byte of deflate stands for 1032 at most.
  const auto claiming = [](std::uint64_t size) {
    const ZipRecord ten{.bytes = "0123456789", .deflated = true, .size = size};
    return error_of([&] { return inflated(ten, "x", ""); });
  };
  EXPECT_THAT(claiming(11 * 1032), HasSubstr("x claims 11352 bytes, which 10 packed ones"));
  EXPECT_THAT(claiming(10 * 1032), HasSubstr("x is damaged"));
  munmap(packed, kBytes);
}

TEST_F(TensorFile, SeesDamageInWhatIsPacked) {
  const std::string x = npy_of("<f4", {3, 2}, kSix);
  std::string archive = zip_of({{"x.npy", x}}, /*packed=*/true);
  const std::string checksum = test::little_endian(
      crc32(0, reinterpret_cast<const Bytef*>(x.data()), static_cast<uInt>(x.size())), 4);
  const std::size_t at = archive.rfind(checksum);
  ASSERT_NE(at, std::string::npos);
  archive[at] = static_cast<char>(archive[at] ^ 1);
  EXPECT_THAT(error(archive), HasSubstr("'x' fails its checksum"));
}

// Records are unpacked in pieces of 64 KiB. Of a record that claims to end with a piece, it is only
// known at the next one whether it does.
TEST(RecordContents, HaveNoMorePiecesThanTheirSizeSays) {
  constexpr std::size_t kPiece = 65'536;
  const auto unpacked = [](std::size_t size) {
    const std::string packed = test::deflated(std::string(size, '\0'));
    const std::string claimed(kPiece, '\0');
    const ZipRecord record{
        .bytes = packed,
        .deflated = true,
        .size = kPiece,
        .checksum = static_cast<std::uint32_t>(
            crc32(0, reinterpret_cast<const Bytef*>(claimed.data()), static_cast<uInt>(kPiece)))};
    return test::error_of([&] { EXPECT_EQ(*inflated(record, "x", ""), claimed); });
  };
  EXPECT_EQ(unpacked(kPiece), "no error");
  EXPECT_THAT(unpacked(2 * kPiece), HasSubstr("x is damaged"));
}

// Of every member, also of those that nothing is made of.
TEST_F(TensorFile, SeesABitThatChangedInWhatIsStored) {
  const std::string x = test::bytes_of(kSix);
  const std::string notes = "nobody reads this";
  const std::vector<test::Record> numpy{{"x.npy", npy_of("<f4", {3, 2}, kSix)},
                                        {"y.npy", npy_of<std::int64_t>("<i8", {3}, {2, 0, 1})},
                                        {"notes.txt", notes}};
  std::vector<test::Record> torch =
      test::torch_records({{"x", "Float", "0", 0, {3, 2}, {2, 1}}, {"y", "Long", "1", 0, {3}, {1}}},
                          {{"0", x}, {"1", test::bytes_of<std::int64_t>({2, 0, 1})}});
  torch.emplace_back("data/notes", notes);
  for (const std::string& good : {zip_of(numpy), zip_of(torch)}) {
    ASSERT_EQ(error(good), "no error");
    for (const std::string& part : {x, notes}) {
      std::string bad = good;
      char& byte = bad[bad.find(part) + part.size() / 2];
      byte = static_cast<char>(byte ^ 1);
      EXPECT_THAT(error(bad), HasSubstr("fails its checksum; accepted: torch.save(")) << part;
    }
  }
}

// The directory's end is looked for behind a comment of any length.
TEST_F(TensorFile, ReadsAnArchiveWithTheLongestComment) {
  const std::string archive = zip_of({{"x.npy", npy_of("<f4", {3, 2}, kSix)},
                                      {"y.npy", npy_of<std::int64_t>("<i8", {3}, {2, 0, 1})}});
  const auto with_comment = [&](std::size_t length) {
    return archive.substr(0, archive.size() - 2) + test::little_endian(length, 2) +
           std::string(length, '.');
  };
  EXPECT_EQ(error(with_comment(65'535)), "no error");
  EXPECT_THAT(error(with_comment(65'535) + "."), HasSubstr("it is not a zip archive"));
}

TEST_F(TensorFile, SaysWhereANumberIsNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto y = npy_of<std::int64_t>("<i8", {3}, {2, 0, 1});
  EXPECT_THAT(
      error(zip_of({{"x.npy", npy_of<float>("<f4", {3, 2}, {1, 2, 3, 4, nan, 6})}, {"y.npy", y}})),
      HasSubstr("file: 'x' has nan at [2, 0]; accepted: finite numbers"));
  EXPECT_THAT(error(zip_of({{"x.npy", npy_of<double>("<f8", {3, 1, 2}, {1, 2, 3, -1e300, 5, 6})},
                            {"y.npy", y}})),
              HasSubstr("'x' has -inf at [1, 0, 1]; accepted: finite numbers that float32 holds"));
  EXPECT_THAT(error(zip_of({{"x.npy", npy_of("<f4", {3, 2}, kSix)},
                            {"y.npy", npy_of<std::uint16_t>("<f2", {3}, {0, 0x7C00, 0})}})),
              HasSubstr("'y' has inf at [1]"));
  EXPECT_THAT(error(zip_of({{"x.npy", npy_of("<f4", {3, 2}, kSix)},
                            {"y.npy", y},
                            {"x_test.npy", npy_of<float>("<f4", {1, 2}, {1, nan})},
                            {"y_test.npy", npy_of<std::int64_t>("<i8", {1}, {0})}})),
              HasSubstr("'x_test' has nan at [0, 1]"));
}

std::vector<std::string> good_archives() {
  const std::vector<test::Record> numpy{{"x.npy", npy_of("<f4", {3, 2}, kSix)},
                                        {"y.npy", npy_of<std::int64_t>("<i8", {3}, {2, 0, 1})}};
  return {zip_of(numpy), zip_of(numpy, /*packed=*/true),
          zip_of(test::torch_records(
              {{"x", "Float", "0", 0, {3, 2}, {2, 1}}, {"y", "Long", "1", 0, {3}, {1}}},
              {{"0", test::bytes_of(kSix)}, {"1", test::bytes_of<std::int64_t>({2, 0, 1})}}))};
}

class HostileTensorFile : public TensorFile {
 protected:
  // Distance between two places that are tried.
  const std::size_t step_ = test::cases<std::size_t>(7, 1);

  void expect_harmless(const std::function<void(const test::TakeFile&)>& for_each_file) const {
    EXPECT_EXIT(test::exit_after_reading(for_each_file,
                                         [this](const std::string& bytes) {
                                           fuzz::read_samples(read_tensor_samples(write(bytes)));
                                         }),
                testing::ExitedWithCode(0), "");
  }
};

TEST_F(HostileTensorFile, IsHarmlessCutAnywhere) {
  for (const std::string& good : good_archives()) {
    EXPECT_EQ(error(good), "no error");
    expect_harmless([&](const auto& take) { test::for_each_cut(good, take, step_); });
    const auto names_the_file = [this](const std::string& bytes) {
      ASSERT_THAT(error(bytes), StartsWith((folder_.path() / "file").string())) << bytes.size();
    };
    test::for_each_cut(good, names_the_file, step_);
  }
}

TEST_F(HostileTensorFile, IsHarmlessWithAnyByteChanged) {
  for (const std::string& good : good_archives()) {
    expect_harmless([&](const auto& take) { test::for_each_changed_byte(good, take, step_); });
  }
}

TEST_F(HostileTensorFile, IsHarmlessWithExtremeNumbers) {
  for (const std::string& good : good_archives()) {
    expect_harmless([&](const auto& take) {
      for (std::size_t at = 0; at + 4 <= good.size(); at += step_) {
        for (const char* const number :
             {"\xFF\xFF\xFF\xFF", "\xFF\xFF\xFF\x7F", "\x00\x00\x00\x80"}) {
          std::string bad = good;
          bad.replace(at, 4, number, 4);
          take(bad);
        }
      }
    });
  }
}

TEST_F(TensorFile, RefusesATypeTagWithoutAValue) {
  std::vector<test::Record> records = test::torch_records({}, {});
  records.front().second = "\x80\2ctorch.jit._pickle\nrestore_type_tag\n)R.";
  EXPECT_THAT(error(zip_of(records)), HasSubstr("it holds no dictionary"));
}

// Values on the stack may be recalled any number of times, so a name that is made of globals, or of
// long texts, would take much more memory than the file.
TEST_F(TensorFile, RefusesGlobalsThatAreNotNamedByShortTexts) {
  const auto error_of_pickle = [this](const std::string& pickle) {
    std::vector<test::Record> records = test::torch_records({}, {});
    records.front().second = "\x80\4" + pickle;
    return error(zip_of(records));
  };
  const auto text = [](const std::string& value) {
    return 'X' + test::little_endian(value.size(), 4) + value;
  };
  EXPECT_THAT(error_of_pickle(text("a") + text("b") + "\x93q\1h\1\x93."),
              HasSubstr("its pickle names a global by a value that is not a text"));
  EXPECT_THAT(error_of_pickle(text("a") + text(std::string(257, 'b')) + "\x93."),
              HasSubstr("its pickle names a global by a text of more than 256 bytes"));
  EXPECT_THAT(error_of_pickle(text("a") + text(std::string(256, 'b')) + "\x93."),
              HasSubstr("it holds no dictionary"));
}

}  // namespace
}  // namespace rubato
