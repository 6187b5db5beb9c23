// docs/records.md has the tables of the schemas, as they are: where it has not, running this test
// with RUBATO_UPDATE_DOCS=1 in the environment writes them.

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "runs/report/report_schemas.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

constexpr std::string_view kBegin = "<!-- generated from the schemas of records -->\n";
constexpr std::string_view kEnd = "<!-- end of what is generated -->\n";

std::string code(const std::string& text) {
  return text.empty() ? "" : fmt::format("`{}`", text);
}

// Only lines of metrics.jsonl become columns and curves.
std::string table_of(const RecordInfo& record) {
  const auto has = [&](const auto& what) { return std::ranges::any_of(record.columns, what); };
  const bool nested = record.is_metrics_line && has([](const ColumnInfo& column) {
                        return json_path(column) != column.name;
                      });
  const bool curves = has([](const ColumnInfo& column) { return !column.tag.empty(); });
  std::string text =
      fmt::format("| field |{} value |{} what |\n|---|{}---|{}---|\n", nested ? " in Python |" : "",
                  curves ? " TensorBoard |" : "", nested ? "---|" : "", curves ? "---|" : "");
  for (const ColumnInfo& column : record.columns) {
    const std::string path = json_path(column);
    text += fmt::format("| {} |", code(path));
    if (nested) text += fmt::format(" {} |", path == column.name ? "" : code(column.name));
    text += fmt::format(" {} |", value_name(column));
    if (curves) text += fmt::format(" {} |", code(column.tag));
    text += fmt::format(" {} |\n", column.help);
  }
  return text;
}

TEST(RecordsDoc, HasTheTablesOfTheSchemas) {
  std::string tables;
  for (const RecordInfo& record : record_infos()) {
    tables += fmt::format("\n## {}\n{}\n\n{}", record.name, record.help, table_of(record));
  }
  const std::string doc = test::read_file(RUBATO_RECORDS_MD);
  const std::size_t begin = doc.find(kBegin);
  const std::size_t end = doc.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::string expected =
      doc.substr(0, begin + kBegin.size()) + tables + "\n" + doc.substr(end);
  if (std::getenv("RUBATO_UPDATE_DOCS") != nullptr) std::ofstream(RUBATO_RECORDS_MD) << expected;
  EXPECT_EQ(test::read_file(RUBATO_RECORDS_MD), expected)
      << "RUBATO_UPDATE_DOCS=1 in the environment of this test writes it";
}

}  // namespace
}  // namespace rubato
