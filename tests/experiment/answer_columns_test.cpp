#include "runs/experiment/answer/answer_columns.hpp"

#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/core/file.hpp"
#include "experiment/answers.hpp"

namespace rubato {
namespace {

using testing::HasSubstr;

// Rows of a table in docs/compare.md: columns without a help of their own stand beside those before
// them.
template <class Rows>
std::string doc_rows(const Rows& rows) {
  std::string text;
  std::string names;
  std::string help;
  const auto end_row = [&] {
    if (!names.empty()) text += fmt::format("| {} | {} |\n", names, help);
  };
  for (const auto& row : rows) {
    if (row.name.empty()) continue;
    const std::string name = fmt::format("`{}`", row.name);
    if (row.help.empty()) {
      names += ", " + name;
      continue;
    }
    end_row();
    names = name;
    help = row.help;
  }
  end_row();
  return text + '\n';
}

TEST(CompareDoc, HasEveryColumnAndEveryWord) {
  const std::string doc = read_file(RUBATO_COMPARE_MD);
  const Answer answer;
  EXPECT_THAT(doc, HasSubstr(doc_rows(cell_columns(answer))));
  EXPECT_THAT(doc, HasSubstr(doc_rows(run_columns(answer))));
  EXPECT_THAT(doc, HasSubstr(doc_rows(kVerdicts)));
  const std::vector<ResultEndRow> lost(kResultEnds.begin() + 1, kResultEnds.end());
  EXPECT_THAT(doc, HasSubstr(doc_rows(lost)));
}

// Whatever reads a file by names finds one column of each.
template <class Row>
void expect_distinct(const std::vector<AnswerColumn<Row>>& columns) {
  std::set<std::string> names;
  std::set<std::string> keys;
  for (const AnswerColumn<Row>& column : columns) {
    EXPECT_TRUE(column.name.empty() || names.insert(column.name).second) << column.name;
    EXPECT_TRUE(column.json.empty() || keys.insert(column.json).second) << column.json;
  }
}

TEST(AnswerColumns, HaveNamesOfTheirOwn) {
  const Answer answer = test::answer_to({{"constant", {0.5, 0.6}, true}}, 85);
  expect_distinct(cell_columns(answer));
  expect_distinct(run_columns(answer));
}

TEST(AnswerColumns, HaveNothingWhereNothingIsKnown) {
  const Answer answer = test::answer_to({{"wild", {std::nullopt}, false}});
  for (const AnswerColumn<Answer::Cell>& column : cell_columns(answer)) {
    const bool known = !column.value(answer.cells[0]).is_null();
    if (column.json.starts_with("/value/")) {
      EXPECT_FALSE(known) << column.name;
    } else if (column.json == "/rank" || column.json == "/runs") {
      EXPECT_TRUE(known) << column.name;
    }
  }
}

TEST(InWords, HasTheDigitsThatANumberIsWorth) {
  EXPECT_EQ(value_in_words(98.7654, true), "98.77");
  EXPECT_EQ(value_in_words(0.0123456, false), "0.01235");
  EXPECT_EQ(amount_in_words(12345.6), "12346");
  EXPECT_EQ(amount_in_words(12.3456), "12.35");
  EXPECT_EQ(amount_in_words(7), "7");
  EXPECT_EQ(amount_in_words({}), kNothing);
}

}  // namespace
}  // namespace rubato
