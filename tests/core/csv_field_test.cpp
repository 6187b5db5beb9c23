#include <gtest/gtest.h>

#include "base/core/text/csv.hpp"

namespace rubato {
namespace {

TEST(CsvField, IsLeftAsItIsWithoutNeedOfQuotes) {
  EXPECT_EQ(csv_field(""), "");
  EXPECT_EQ(csv_field("not told from best"), "not told from best");
  EXPECT_EQ(csv_field("adascale:smoothing=0.9"), "adascale:smoothing=0.9");
}

TEST(CsvField, IsQuotedWhereItWouldBeTakenForSomethingElse) {
  EXPECT_EQ(csv_field("ring, no update"), "\"ring, no update\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_field("two\rlines"), "\"two\rlines\"");
  EXPECT_EQ(csv_field(" before"), "\" before\"");
  EXPECT_EQ(csv_field("behind "), "\"behind \"");
  EXPECT_EQ(csv_field("\tbefore"), "\"\tbefore\"");
  EXPECT_EQ(csv_field("behind\xC2\xA0"), "\"behind\xC2\xA0\"") << "a no-break space";
  EXPECT_EQ(csv_field("not\tthe\xC2\xA0tabs within"), "not\tthe\xC2\xA0tabs within");
}

TEST(CsvField, DoublesQuotes) {
  EXPECT_EQ(csv_field("a \"cat\""), "\"a \"\"cat\"\"\"");
}

}  // namespace
}  // namespace rubato
