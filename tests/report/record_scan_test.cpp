// A line of metrics is scanned to the same cells as a JSON document has, or not at all.

#include "runs/report/record_scan.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <rubato/base/error.hpp>

#include "loop/train/record_schemas.hpp"
#include "runs/report/record_cells.hpp"
#include "runs/report/report_schemas.hpp"
#include "support/full_record.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

template <class Record>
std::string line_of(const RecordSchema<Record>& schema, const Record& record) {
  return json_of(schema, record, {{"kind", schema.name}}).dump();
}

// As text, in which NaN is equal to itself.
std::vector<std::string> texts_of(const Cells& cells) {
  std::vector<std::string> texts;
  for (const Cell& cell : cells) {
    texts.push_back(std::to_string(cell.index()) + " " + json_of(cell).dump());
  }
  return texts;
}

// Whether a text is scanned; its cells are then those of the document, which is read where a blank
// precedes the text.
bool is_scanned(const std::string& kind, const std::string& line) {
  const std::vector<ColumnInfo>& columns = record_info(kind).columns;
  EXPECT_FALSE(scanned_cells(columns, " " + line).has_value()) << line;
  const std::optional<Cells> scanned = scanned_cells(columns, line);
  if (!scanned) return false;
  try {
    EXPECT_EQ(texts_of(*scanned), texts_of(cells_of(columns, " " + line))) << line;
  } catch (const Error& error) {
    ADD_FAILURE() << line << " " << error.what();
  }
  return true;
}

TEST(RecordScan, ReadsAllThatARunWrites) {
  EXPECT_TRUE(is_scanned("step", line_of(step_schema(), test::full_step())));
  EXPECT_TRUE(is_scanned("step", line_of(step_schema(), StepRecord{})));
  EXPECT_TRUE(is_scanned("epoch", line_of(epoch_schema(), test::full_record(epoch_schema()))));
  EXPECT_TRUE(is_scanned("epoch", line_of(epoch_schema(), EpochRecord{})));
  EXPECT_TRUE(is_scanned("fault", line_of(fault_schema(), test::full_record(fault_schema()))));
  EXPECT_TRUE(
      is_scanned("minibatch", line_of(minibatch_schema(), test::full_record(minibatch_schema()))));
  EXPECT_TRUE(
      is_scanned("monitor", line_of(monitor_schema(), test::full_record(monitor_schema()))));
  EXPECT_TRUE(is_scanned("own", R"({"kind":"own","step":3,"metrics":{"b":-1.5,"a":null}})"));
  for (const char* number : {"0.0", "-0.0", "null", "1e-05", "9.324000000000001e-06", "12", "1E+2",
                             "0.1234567890123456789", "4.9406564584124654e-324"}) {
    EXPECT_TRUE(is_scanned("step", std::string(R"({"kind":"step","loss":)") + number + "}"))
        << number;
  }
}

TEST(RecordScan, LeavesAllElseToTheDocument) {
  for (const char* line : {R"({"kind":"step","loss":1.0,"loss":2.0})",
                           R"({"kind":"step","loss":1.0,"step":2})",
                           R"({"kind":"step","clock":{"hours":1.0},"clock":{"money":1.0}})",
                           R"({"kind":"step","loss":-0})",
                           R"({"kind":"step","loss":01})",
                           R"({"kind":"step","loss":1.})",
                           R"({"kind":"step","loss":.5})",
                           R"({"kind":"step","loss":1e})",
                           R"({"kind":"step","loss":1e999})",
                           R"({"kind":"step","loss":inf})",
                           R"({"kind":"step","loss":nan})",
                           R"({"kind":"step","step":1.0})",
                           R"({"kind":"step","step":1234567890123456})",
                           R"({"kind":"step","step":-1})",
                           R"({"kind":"step","l\u006fss":1.0})",
                           R"({"kind":"step","digest":"\n"})",
                           "{\"kind\":\"step\",\"digest\":\"\xff\"}",
                           R"({"kind":"step","substeps":{}})",
                           R"({"kind":"step","decision":{"a":1,"a":2}})",
                           R"({"kind":"step","new":{"a":1}})",
                           R"({"kind":"step","":1})",
                           R"({"kind":"step","loss":1.0},)",
                           R"({"kind":"step")",
                           "[]",
                           ""}) {
    EXPECT_FALSE(is_scanned("step", line)) << line;
  }
  EXPECT_TRUE(is_scanned("step", R"({"kind":"step","loss":1.0,"new":1,"newer":"yes"})"))
      << "a newer program may have more columns";
}

// Whatever letter is another one, missing, or the last one.
TEST(RecordScan, NeverReadsWhatTheDocumentDoesNot) {
  StepRecord step = test::full_step();
  step.loss = -1.25e-7;
  const std::string line = line_of(step_schema(), step);
  for (std::size_t at = 0; at < line.size(); ++at) {
    for (const char other : std::string_view(R"(",:}]0-.e\)")) {
      std::string changed = line;
      changed[at] = other;
      is_scanned("step", changed);
    }
    is_scanned("step", std::string(line).erase(at, 1));
    EXPECT_FALSE(is_scanned("step", line.substr(0, at)));
  }
}

}  // namespace
}  // namespace rubato
