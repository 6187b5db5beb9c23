#include <array>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/runs/records.hpp>

#include "runs/report/metrics_export.hpp"
#include "runs/report/report_schemas.hpp"
#include "support/error_of.hpp"
#include "support/full_record.hpp"
#include "support/matchers.hpp"
#include "support/no_training.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using Row = std::vector<std::string>;

class MetricsCsv : public testing::Test {
 protected:
  [[nodiscard]] std::string csv(std::string_view kind) const {
    std::string text;
    write_metrics_csv(file_, kind, [&](std::string_view bytes) { text += bytes; });
    return text;
  }
  // Fields without commas and quotes.
  [[nodiscard]] std::vector<Row> rows(std::string_view kind) const {
    std::vector<Row> rows;
    std::istringstream lines(csv(kind));
    for (std::string line; std::getline(lines, line);) {
      Row& row = rows.emplace_back();
      std::istringstream fields(line + ",");
      for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
    }
    return rows;
  }
  void append(const std::string& text) const { std::ofstream(file_, std::ios::app) << text; }

  test::TempFolder folder_;
  std::filesystem::path file_ = folder_.path() / "metrics.jsonl";
};

std::string field_of(const std::vector<Row>& rows, const std::string& column, std::size_t row = 1) {
  for (std::size_t i = 0; i < rows.at(0).size(); ++i) {
    if (rows[0][i] == column) return rows.at(row).at(i);
  }
  return "no column " + column;
}

// Each number of each kind of record has its field, whatever columns there will be.
TEST_F(MetricsCsv, HasTheColumnsOfTheSchemas) {
  MetricsWriter metrics(file_);
  const std::array<FaultRecord, 1> faults{};
  const StepRecord step = test::full_step();
  metrics.on_fault(test::no_training, step.plan, faults, 5);
  metrics.on_step(test::no_training, step);
  metrics.on_epoch(test::no_training, test::full_record(epoch_schema()));
  const std::array<TensorStatistics, 1> tensors{{{.name = "w"}}};
  metrics.write(step.plan, tensors);
  const std::array<MetricValue, 1> values{{{.name = "mine", .value = 2}}};
  metrics.write({.of = "step", .index = 3, .learning_rate = 0.5, .values = values});
  int kinds = 0;
  for (const RecordInfo& record : record_infos()) {
    if (!record.is_metrics_line) continue;
    ++kinds;
    const auto found = rows(record.name);
    ASSERT_EQ(found.size(), 2U) << record.name;
    EXPECT_EQ(found[0].size(), found[1].size()) << record.name;
    for (const ColumnInfo& column : record.columns) {
      if (column.type == ColumnType::wholes) continue;
      const std::string name =
          column.type == ColumnType::numbers ? with_name(column.name, "mine") : column.name;
      // A line of one's own is of a step or of an epoch.
      const bool is_given = record.name != "own" || name != "epoch";
      EXPECT_EQ(field_of(found, name) != "", is_given) << record.name << " " << name;
      EXPECT_THAT(field_of(found, name), Not(HasSubstr("no column"))) << record.name;
    }
  }
  EXPECT_EQ(kinds, static_cast<int>(metrics_kinds().size()));
  EXPECT_EQ(csv("own"), "step,epoch,lr,mine\n3,,0.5,2.0\n");
  EXPECT_EQ(field_of(rows("step"), "applied"), "false");
  EXPECT_EQ(field_of(rows("step"), "batch"), "64");
}

TEST_F(MetricsCsv, HasWhatLinesLeaveOut) {
  MetricsWriter metrics(file_);
  EpochRecord epoch;
  epoch.steps = 7;
  metrics.on_epoch(test::no_training, epoch);
  const auto found = rows("epoch");
  EXPECT_EQ(field_of(found, "steps"), "7");
  EXPECT_EQ(field_of(found, "whole"), "true") << "as it usually is";
  EXPECT_EQ(field_of(found, "test_accuracy"), "") << "it was not measured";
}

TEST_F(MetricsCsv, QuotesTextsAndJoinsNumbersOfAllLines) {
  append(R"({"kind":"own","step":1,"metrics":{"b":1.5}})"
         "\n");
  append(R"({"kind":"own","step":2,"metrics":{"a,c":null,"b":2.0}})"
         "\n");
  EXPECT_EQ(csv("own"), "step,epoch,lr,\"a,c\",b\n1,,,,1.5\n2,,,,2.0\n");
}

TEST_F(MetricsCsv, LeavesOutALineThatIsNotWholeYet) {
  MetricsWriter metrics(file_);
  metrics.on_epoch(test::no_training, EpochRecord{});
  const std::string before = csv("epoch");
  append(R"({"kind":"epoch","ep)");
  EXPECT_EQ(csv("epoch"), before);
  // It would be valid, but for its end.
  append(R"(och":5})");
  EXPECT_EQ(csv("epoch"), before);
}

TEST_F(MetricsCsv, SaysWhichLineIsDamaged) {
  const auto error = [&](const std::string& line) {
    std::ofstream(file_) << R"({"kind":"own","step":1,"metrics":{}})"
                         << "\n"
                         << line << "\n";
    return error_of([&] { return csv("own"); });
  };
  EXPECT_EQ(error("garbage"), file_.string() +
                                  ":2: is not a line of metrics; accepted: what a run has "
                                  "written (docs/records.md)");
  EXPECT_THAT(error("[]"), HasSubstr(":2: is not a line of metrics"));
  EXPECT_THAT(error(R"({"kind":3})"), HasSubstr(":2: is not a line of metrics"));
  EXPECT_THAT(error(R"({"kind":"own","step":"x"})"), HasSubstr(":2: step is \"x\";"));
  EXPECT_THAT(error(R"({"kind":"own","metrics":7})"), HasSubstr(":2: metrics.* is 7;"));
  EXPECT_THAT(error(R"({"kind":"own","metrics":{"a":[1]}})"), HasSubstr(":2: metrics.* is [1];"));
}

TEST_F(MetricsCsv, NamesWhatThereIs) {
  EXPECT_THAT(
      error_of([&] { return csv("own"); }),
      HasSubstr("metrics.jsonl: cannot be read: No such file or directory; accepted: the folder of "
                "a run"));
  append("");
  EXPECT_THAT(error_of([&] { return csv("stpe"); }),
              HasSubstr("unknown kind of line 'stpe'; did you mean 'step'?"));
  EXPECT_EQ(rows("fault").size(), 1U) << "a header alone";
  EXPECT_THAT(metrics_kinds(), Contains("minibatch"));
}

}  // namespace
}  // namespace rubato
