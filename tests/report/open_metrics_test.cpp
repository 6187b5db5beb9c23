#include "support/open_metrics.hpp"

#include <chrono>
#include <filesystem>
#include <limits>
#include <thread>

#include <gmock/gmock.h>

#include "base/core/file.hpp"
#include "runs/report/metrics_export.hpp"
#include "support/full_record.hpp"
#include "support/no_training.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::OpenMetricsText;
using testing::HasSubstr;

class Watched final : public test::NoTraining {
 public:
  [[nodiscard]] const TrainResult& result() const override { return result_; }
  TrainResult result_;
};

class OpenMetricsFile : public testing::Test {
 protected:
  [[nodiscard]] std::string text() const { return test::read_file(file_); }
  [[nodiscard]] OpenMetricsText read() const {
    OpenMetricsText found(text());
    EXPECT_EQ(found.violation(), "") << text();
    return found;
  }

  test::TempFolder folder_;
  std::filesystem::path file_ = folder_.path() / "run.prom";
  Watched training_;
};

// The columns that a record has numbers for, however they are called in the file.
template <class Record>
std::size_t numbers_of(const RecordSchema<Record>& schema, const Record& record) {
  std::size_t count = 0;
  for (const RecordColumn<Record>& column : schema.columns) {
    const Cell cell = column.read(record);
    const ColumnType type = column.info().type;
    const bool is_number = type == ColumnType::whole || type == ColumnType::real ||
                           type == ColumnType::flag || type == ColumnType::numbers;
    const bool has_value =
        !std::holds_alternative<std::monostate>(cell) && cell != Cell(std::vector<NamedNumber>());
    if (column.info().shown && is_number && has_value) ++count;
  }
  return count;
}

TEST_F(OpenMetricsFile, HasEveryNumberOfTheSchemas) {
  const StepRecord step = test::full_step();
  const EpochRecord epoch = test::full_record(epoch_schema());
  training_.result_ = test::full_record(result_schema());
  OpenMetrics metrics(file_, "first");
  metrics.on_added(training_);
  metrics.on_step(training_, step);
  metrics.on_epoch(training_, epoch);
  const OpenMetricsText found = read();
  EXPECT_EQ(found.samples().size(), 1 + numbers_of(step_schema(), step) +
                                        numbers_of(epoch_schema(), epoch) +
                                        numbers_of(result_schema(), training_.result_));
  EXPECT_GT(found.samples().size(), 50U);
  for (const auto& [name, sample] : found.samples()) EXPECT_EQ(sample.labels.at("run"), "first");
  EXPECT_EQ(found.value("rubato_running"), 1);
  EXPECT_EQ(found.value("rubato_step_batch_samples"), 64);
  EXPECT_EQ(found.value("rubato_step_wall_seconds"), step.seconds.wall);
  EXPECT_EQ(found.value("rubato_step_core_hours"), step.time->core_seconds / 3600);
  EXPECT_EQ(found.value("rubato_epoch"), static_cast<double>(epoch.epoch.value()));
  EXPECT_EQ(found.value("rubato_epoch_test_accuracy_ratio"), *epoch.test->accuracy);
  EXPECT_EQ(found.samples().find("rubato_epoch_metrics")->second.labels.at("name"), "mine");
  EXPECT_THAT(text(), HasSubstr("# UNIT rubato_epoch_test_accuracy_ratio ratio\n"));
}

TEST_F(OpenMetricsFile, IsThereBeforeTheFirstStepAndSaysWhenTheTrainingHasEnded) {
  {
    OpenMetrics metrics(file_, "run");
    metrics.on_added(training_);
    EXPECT_EQ(read().value("rubato_running"), 1);
    EXPECT_FALSE(read().contains("rubato_step_loss"));
    metrics.on_step(training_, test::full_step());
    EXPECT_FALSE(read().contains("rubato_step_loss")) << "it was written a moment ago";
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    metrics.on_step(training_, test::full_step());
    EXPECT_TRUE(read().contains("rubato_step_loss"));
  }
  EXPECT_EQ(read().value("rubato_running"), 0);
  EXPECT_TRUE(read().contains("rubato_step_loss"));
  EXPECT_FALSE(std::filesystem::exists(file_.string() + ".part"));
}

TEST_F(OpenMetricsFile, LeavesOutWhatWasNotMeasuredAndHasWhatIsNotFinite) {
  OpenMetrics metrics(file_, "run");
  EpochRecord epoch;
  epoch.train_loss = std::numeric_limits<double>::infinity();
  metrics.on_epoch(training_, epoch);
  const OpenMetricsText found = read();
  EXPECT_EQ(found.value("rubato_epoch_train_loss"), std::numeric_limits<double>::infinity());
  EXPECT_FALSE(found.contains("rubato_epoch_test_loss"));
  epoch.train_loss = std::numeric_limits<double>::quiet_NaN();
  metrics.on_epoch(training_, epoch);
  EXPECT_THAT(text(), HasSubstr("rubato_epoch_train_loss{run=\"run\"} NaN\n"));
  EXPECT_EQ(read().violation(), "");
}

TEST_F(OpenMetricsFile, HasNamesWithAnyLetters) {
  const std::string name = "a \"b\\\nc";
  {
    OpenMetrics metrics(file_, name);
    EpochRecord epoch;
    epoch.metrics = {{name, 2}};
    metrics.on_epoch(training_, epoch);
  }
  const auto labels = read().samples().find("rubato_epoch_metrics")->second.labels;
  EXPECT_EQ(labels.at("run"), name);
  EXPECT_EQ(labels.at("name"), name);
}

// A parser would refuse the file.
TEST_F(OpenMetricsFile, IsInUtf8WhateverTheFolderIsCalled) {
  OpenMetrics metrics(file_, "r\xffn");
  metrics.on_epoch(training_, EpochRecord());
  EXPECT_THAT(text(), HasSubstr("{run=\"r\xef\xbf\xbdn\"}"));
}

TEST_F(OpenMetricsFile, ThatCannotBeWrittenIsSaidBeforeTraining) {
  OpenMetrics metrics(folder_.path() / "none/run.prom", "run");
  EXPECT_THROW(metrics.on_added(training_), OutputError);
}

// The parser of these tests finds what is wrong.
TEST(OpenMetricsParser, IsStrict) {
  const std::string good =
      "# TYPE a_s gauge\n# UNIT a_s s\n# HELP a_s what\na_s{run=\"x\"} 1\n# EOF\n";
  EXPECT_EQ(OpenMetricsText(good).violation(), "");
  const auto broken = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return OpenMetricsText(text).violation();
  };
  EXPECT_NE(broken("# EOF\n", ""), "");
  EXPECT_NE(broken("# UNIT a_s s", "# UNIT a_s m"), "");
  EXPECT_NE(broken("} 1", "} one"), "");
  EXPECT_NE(broken("a_s{", "b_s{"), "");
  EXPECT_NE(broken("\"x\"", "\"x"), "");
  EXPECT_NE(broken("# EOF", "a_s{run=\"x\"} 1\n# EOF"), "");
  EXPECT_NE(broken("gauge", "number"), "");
}

}  // namespace
}  // namespace rubato
