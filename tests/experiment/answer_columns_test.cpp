#include "runs/experiment/answer/answer_columns.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "base/core/file.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

// A row of a table in docs/compare.md; those that follow each other with the same help are one row
// there.
using DocRow = std::pair<std::string, std::string>;

std::string doc_text(const std::vector<DocRow>& rows) {
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& [name, help] = rows[i];
    text += fmt::format("{}`{}`", i == 0 || rows[i - 1].second != help ? "| " : ", ", name);
    if (i + 1 == rows.size() || rows[i + 1].second != help) text += fmt::format(" | {} |\n", help);
  }
  return text + '\n';
}

template <class Row>
std::string doc_text(const std::vector<AnswerColumn<Row>>& columns) {
  std::vector<DocRow> rows;
  for (const AnswerColumn<Row>& column : columns) {
    if (column.in_csv) rows.emplace_back(column.name(), column.record.info().help);
  }
  return doc_text(rows);
}

TEST(CompareDoc, HasEveryColumnAndEveryWord) {
  const std::string doc = read_file(RUBATO_COMPARE_MD);
  const Answer answer;
  EXPECT_THAT(doc, HasSubstr(doc_text(cell_columns(answer))));
  EXPECT_THAT(doc, HasSubstr(doc_text(run_columns(answer))));
  std::vector<DocRow> verdicts;
  verdicts.reserve(kVerdicts.size());
  for (const VerdictRow& row : kVerdicts) verdicts.emplace_back(row.name, row.help);
  EXPECT_THAT(doc, HasSubstr(doc_text(verdicts)));
  std::vector<DocRow> lost;
  for (const ResultEndRow& row : kResultEnds) {
    if (is_lost(row.value)) lost.emplace_back(row.name, row.help);
  }
  EXPECT_THAT(doc, HasSubstr(doc_text(lost)));
}

// Whatever reads a file by names finds one column of each, and the schema says the same of it.
template <class Row>
void expect_described(const nlohmann::json& list, const std::vector<AnswerColumn<Row>>& columns) {
  const nlohmann::json& schema = list.at("items");
  RecordInfo record{.help = schema.at("description")};
  std::set<std::string> names;
  std::set<std::string> keys;
  for (const AnswerColumn<Row>& column : columns) {
    const ColumnInfo& info = column.record.info();
    EXPECT_TRUE(names.insert(column.name()).second) << column.name();
    if (!info.shown) continue;
    EXPECT_TRUE(keys.insert(json_path(info)).second) << column.name();
    record.columns.push_back(info);
  }
  nlohmann::json expected = record_schema(record);
  expected["additionalProperties"] = {{"type", "string"}};
  EXPECT_EQ(schema, expected) << expected.dump(1) << "\nis what belongs into the file";
}

TEST(AnswerColumns, AreThoseOfTheSchema) {
  const auto schema = nlohmann::json::parse(read_file(RUBATO_ANSWER_SCHEMA));
  const Answer answer;
  expect_described(schema.at("properties").at("cells"), cell_columns(answer));
  expect_described(schema.at("properties").at("runs"), run_columns(answer));
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
