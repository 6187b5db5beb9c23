#include "base/core/text/text_table.hpp"

#include <string>

#include <gmock/gmock.h>

#include "support/matchers.hpp"

namespace rubato {
namespace {

TEST(TextTable, HasColumnsAsWideAsTheirWidestCells) {
  TextTable table({Column::left, Column::right, Column::left});
  table.add({"strategy", "ms", "reproducible"});
  table.add({"ring", "1000.5", "no"});
  table.add({"chunked-tree", "2", "yes"});
  EXPECT_EQ(table.text(),
            "strategy          ms  reproducible\n"
            "ring          1000.5  no\n"
            "chunked-tree       2  yes\n");
}

TEST(TextTable, EndsNoLineWithABlank) {
  TextTable table({Column::left, Column::left}, 2);
  table.add({"a", "long"});
  table.add({"b", ""});
  table.add({"", ""});
  EXPECT_EQ(table.text(), "  a  long\n  b\n\n");
}

TEST(TextTable, WrapsItsLastColumn) {
  TextTable table({Column::left, Column::right, Column::wrapped}, 1);
  const std::string word(30, 'w');
  table.add({"name", "7", word + ' ' + word + ' ' + word});
  table.add({"n", "10", "short"});
  EXPECT_THAT(table.rows(), ElementsAre(" name   7  " + word + ' ' + word + '\n' +
                                            std::string(11, ' ') + word + '\n',
                                        " n     10  short\n"));
}

TEST(TextTable, CountsCharactersNotBytes) {
  TextTable table({Column::left, Column::right, Column::left});
  table.add({"\u00fcber", "\u2265", "x"});
  table.add({"unter", "10", "y"});
  EXPECT_EQ(table.text(), "\u00fcber    \u2265  x\nunter  10  y\n");
}

TEST(TextTable, MovesColumnsBelowOnANarrowTerminal) {
  TextTable table({Column::left, Column::right, Column::right, Column::left}, 1);
  table.add({"rule", "steps", "samples", "ended by"});
  table.add({"linear", "5", "12,000", "hours"});
  EXPECT_EQ(table.text({34}), table.text()) << "it fits";
  EXPECT_EQ(table.text({23}), table.text({25})) << "to the last column";
  EXPECT_EQ(table.text({25}),
            " rule    steps  samples\n"
            " linear      5   12,000\n"
            "\n"
            " rule    ended by\n"
            " linear  hours\n");
}

TEST(TextTable, BreaksCellsThatDoNotFitEvenAlone) {
  TextTable table({Column::left, Column::left});
  table.add({"devices", "2 to 16, 7.9 on average"});
  table.add({"at zero", "never"});
  EXPECT_EQ(table.text({24}),
            "devices  2 to 16, 7.9 on\n"
            "         average\n"
            "at zero  never\n");
  TextTable traces({Column::left, Column::right});
  traces.add({"spot:most=16,seed=1", "93.25 best"});
  EXPECT_EQ(traces.text({30}),
            "spot:most=16,  93.25 best\n"
            "seed=1\n");
}

TEST(TextTable, PutsProseBelowWhereItHasNoRoom) {
  TextTable table({Column::left, Column::left, Column::wrapped}, 2);
  table.add({"smoothing", "0.9", "a number from 0 to below 1"});
  table.add({"", "", "and more"});
  EXPECT_EQ(table.text({30}),
            "  smoothing  0.9\n"
            "      a number from 0 to below\n"
            "      1\n"
            "      and more\n");
}

TEST(TextTable, IsEmptyWithoutRows) {
  EXPECT_EQ(TextTable({Column::left, Column::wrapped}, 4).text(), "");
}

TEST(TextTableDeathTest, AbortsWhereCellsDoNotFit) {
  TextTable table({Column::left, Column::right});
  EXPECT_DEATH(table.add({"a"}), "a cell for each column");
  EXPECT_DEATH(TextTable({Column::wrapped, Column::left}), "only the last column is wrapped");
}

TEST(TextTable, HasColumnsOfWideLettersAndMarks) {
  TextTable table({Column::left, Column::right});
  table.add({"\u5b66\u7fd2", "1"});
  table.add({"e\u0301", "20"});
  EXPECT_EQ(table.text(), "\u5b66\u7fd2   1\ne\u0301     20\n");
}

}  // namespace
}  // namespace rubato
