// Tables and texts that are cut off or changed: read or refused, in little memory.

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "fuzz/read_samples.hpp"
#include "loop/data/data_files.hpp"
#include "support/damaged_files.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using Read = std::function<DataSets(const std::filesystem::path& file)>;

void expect_harmless(const std::string& good, const Read& read) {
  const test::TempFolder folder;
  fuzz::read_samples(read(folder.write("good", good)));
  EXPECT_EXIT(
      test::exit_after_reading(
          [&good](const test::TakeFile& take) {
            test::for_each_cut(good, take);
            test::for_each_changed_byte(good, take);
          },
          [&](const std::string& bytes) { fuzz::read_samples(read(folder.write("bad", bytes))); }),
      testing::ExitedWithCode(0), "");
}

TEST(DamagedTable, IsReadOrRefused) {
  const std::string table =
      "age,\"eye colour\",label\n30,\"light, blue\",yes\n41.5,brown,no\n-2e1,brown,yes\n";
  for (const bool standardise : {false, true}) {
    expect_harmless(table, [standardise](const std::filesystem::path& file) {
      return read_csv_samples(file, {.standardise = standardise});
    });
  }
}

TEST(DamagedTable, IsReadOrRefusedWithOtherSeparators) {
  expect_harmless("# by hand\nage::\"eye::colour\"::label\n30::\"light::blue\"::yes\n",
                  [](const std::filesystem::path& file) {
                    return read_csv_samples(file, {.separator = "::", .comment = "#"});
                  });
  expect_harmless(
      "age \"eye colour\" label\n30 \"light blue\" yes\n41.5 - no\n",
      [](const std::filesystem::path& file) {
        return read_csv_samples(file, {.missing = MissingValues::mean, .missing_words = {"", "-"}});
      });
}

TEST(DamagedTable, IsReadOrRefusedAsATestSet) {
  const std::string table = "a;b;c\n1;x;0\n2;y;1\n";
  const test::TempFolder folder;
  const auto train = folder.write("train.csv", table);
  expect_harmless(table, [&train](const std::filesystem::path& file) {
    return read_csv_samples(train, {.test = file});
  });
}

TEST(DamagedText, IsReadOrRefused) {
  expect_harmless(
      "\xEF\xBB\xBFna\u00efve caf\u00e9, \u20ac 5, \U0001F3BC and so on\n",
      [](const std::filesystem::path& file) { return read_text_samples(file, {.length = 4}); });
}

}  // namespace
}  // namespace rubato
