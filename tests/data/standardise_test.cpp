// Columns with mean 0 and deviation 1: of large numbers, of constants, and of every form of file.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "data/archive_files.hpp"
#include "data/input_of.hpp"
#include "loop/data/data_files.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::input_of;
using test::npy_of;
using test::zip_of;

using Column = std::vector<double>;

class Standardise : public test::TableFiles {
 protected:
  // The only column of samples, as a trainer gets it.
  static Column column_of(const DataSets& data) {
    Column column;
    for (std::int64_t i = 0; i < data.train.size(); ++i) {
      column.push_back(input_of(data, data.train, i).front());
    }
    return column;
  }
  DataSets of_table(const Column& column) const {
    std::string table = "a,y\n";
    for (std::size_t i = 0; i < column.size(); ++i) {
      table += fmt::format("{},{}\n", column[i], i % 2);
    }
    return read(table, {.standardise = true});
  }
  DataSets of_file(const std::string& bytes) const {
    // Files are mapped, so each has a name of its own.
    DataSets data = read_tensor_samples(folder_.write(fmt::format("file{}", ++files_), bytes));
    data.standardised.emplace();
    normalise(data);
    return data;
  }
  static std::string labels(std::size_t rows) {
    std::vector<std::int64_t> classes(rows);
    for (std::size_t i = 0; i < rows; ++i) classes[i] = static_cast<std::int64_t>(i % 2);
    return npy_of("<i8", {static_cast<std::int64_t>(rows)}, classes);
  }
  DataSets of_numpy(const Column& column, bool packed = false, bool column_major = false) const {
    const auto rows = static_cast<std::int64_t>(column.size());
    return of_file(zip_of({{"x.npy", npy_of("<f8", {rows, 1}, column, column_major)},
                           {"y.npy", labels(column.size())}},
                          packed));
  }
  // The number of rows must fit into a byte.
  DataSets of_torch(const Column& column) const {
    const auto rows = static_cast<std::uint8_t>(column.size());
    std::vector<std::int64_t> classes(column.size());
    for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::int64_t>(i % 2);
    return of_file(zip_of(test::torch_records(
        {{"x", "Double", "0", 0, {rows, 1}, {1, 1}}, {"y", "Long", "1", 0, {rows}, {1}}},
        {{"0", test::bytes_of(column)}, {"1", test::bytes_of(classes)}})));
  }

  mutable int files_ = 0;
};

// What sums are rounded by is no deviation.
TEST_F(Standardise, LeavesNothingOfAConstant) {
  for (const double constant : {14.62, 0.1, 1.0 / 3, -1e7, 0.0}) {
    const Column column(200, constant);
    for (const DataSets& data : {of_table(column), of_numpy(column), of_torch(column)}) {
      EXPECT_EQ(data.features.front().mean, constant);
      EXPECT_EQ(data.features.front().deviation, 1) << constant;
      EXPECT_THAT(column_of(data), Each(0)) << constant;
    }
  }
  Column rounded(200, 0.3);
  for (std::size_t i = 0; i < rounded.size(); i += 3) rounded[i] = 0.1 + 0.2;
  for (const DataSets& data : {of_table(rounded), of_numpy(rounded)}) {
    EXPECT_EQ(data.features.front().deviation, 1);
    EXPECT_THAT(column_of(data), Each(DoubleNear(0, 1e-15)));
  }
}

// A float32 has 24 bits: less than a time in seconds.
TEST_F(Standardise, KeepsSmallDifferencesOfLargeNumbers) {
  for (const double offset : {1e7, 1.7e9, -1.7e9}) {
    Column column;
    Column small;
    for (int i = 0; i < 200; ++i) {
      small.push_back(0.25 * ((i * 7) % 13));
      column.push_back(offset + small.back());
    }
    const Column expected = column_of(of_numpy(small));
    EXPECT_GT(*std::ranges::max_element(expected), 1);
    for (const DataSets& data : {of_table(column), of_numpy(column), of_torch(column)}) {
      EXPECT_THAT(column_of(data), Pointwise(DoubleNear(1e-6), expected)) << offset;
    }
  }
}

TEST_F(Standardise, GivesTheSameBitsHoweverDataAreStored) {
  Column column;
  for (int i = 0; i < 200; ++i) column.push_back(1e5 + std::sin(i));
  const Column expected = column_of(of_table(column));
  EXPECT_EQ(column_of(of_numpy(column)), expected);
  EXPECT_EQ(column_of(of_numpy(column, /*packed=*/true)), expected);
  EXPECT_EQ(column_of(of_numpy(column, /*packed=*/false, /*column_major=*/true)), expected);
  EXPECT_EQ(column_of(of_torch(column)), expected);
  // Numbers that narrower types hold.
  Column halves;
  for (int i = 0; i < 200; ++i) halves.push_back(0.5 * ((i * 11) % 17));
  const auto rows = static_cast<std::int64_t>(halves.size());
  const std::vector<float> singles(halves.begin(), halves.end());
  const DataSets narrow = of_file(
      zip_of({{"x.npy", npy_of("<f4", {rows, 1}, singles)}, {"y.npy", labels(halves.size())}}));
  EXPECT_EQ(column_of(narrow), column_of(of_table(halves)));
}

// A model in float64 gets all of its bits.
TEST_F(Standardise, RoundsToTheTypeOfTheModelAlone) {
  const DataSets data = of_numpy({1, 2, 4});
  double value = 0;
  InputReader(data).read(data.train.input(0), &value);
  EXPECT_DOUBLE_EQ(value, (1 - 7.0 / 3) / std::sqrt(14.0 / 9));
}

}  // namespace
}  // namespace rubato
