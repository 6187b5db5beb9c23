// Each column of the schemas is where it says that it is: in the files, in their JSON Schema, in
// progress and in a trainer's state. Records are filled by the schemas, so that a column that is
// added is tested, too.

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <rubato/runs/records.hpp>

#include "loop/train/record_schemas.hpp"
#include "runs/report/progress.hpp"
#include "runs/report/record_cells.hpp"
#include "runs/report/report_schemas.hpp"
#include "support/full_record.hpp"
#include "support/json_schema.hpp"
#include "support/matchers.hpp"
#include "support/no_training.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using nlohmann::json;

const test::JsonSchema& json_schema() {
  static const test::JsonSchema schema(json::parse(record_json_schema()));
  return schema;
}

// All columns have values there.
template <class Record>
void expect_all(const json& record, const RecordSchema<Record>& schema) {
  EXPECT_EQ(json_schema().violation(record), "");
  for (const RecordColumn<Record>& column : schema.columns) {
    if (!column.info().shown) continue;
    const json* const value = value_in(record, column.info());
    ASSERT_TRUE(value) << schema.name << " lacks " << column.info().name;
    EXPECT_FALSE(value->is_null()) << column.info().name;
  }
}

// What observers write of these records, line by line.
std::vector<json> metrics_of(const StepRecord& step, const EpochRecord& epoch) {
  const test::TempFolder folder;
  MetricsWriter metrics(folder.path() / "metrics.jsonl");
  const std::array<FaultRecord, 1> faults{};
  metrics.on_fault(test::no_training, step.plan, faults, 5);
  metrics.on_step(test::no_training, step);
  metrics.on_epoch(test::no_training, epoch);
  const std::array<TensorStatistics, 1> tensors{{{.name = "w"}}};
  metrics.write(step.plan, tensors);
  const std::array<MetricValue, 1> values{{{.name = "mine", .value = 2}}};
  metrics.write({.of = "step", .index = 3, .learning_rate = 0.5, .values = values});
  metrics.write({.of = "epoch", .index = 1, .values = values});
  std::vector<json> lines;
  std::istringstream in(test::read_file(folder.path() / "metrics.jsonl"));
  for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
  return lines;
}

TEST(Records, HaveAllTheirColumnsInMetrics) {
  const auto lines = metrics_of(test::full_step(), test::full_record(epoch_schema()));
  ASSERT_EQ(lines.size(), 7U);
  expect_all(lines[0], fault_schema());
  expect_all(lines[1], minibatch_schema());
  expect_all(lines[2], step_schema());
  expect_all(lines[3], epoch_schema());
  expect_all(lines[4], monitor_schema());
  for (const char* key : {"step", "lr", "metrics"}) EXPECT_TRUE(lines[5].contains(key)) << key;
  for (const char* key : {"epoch", "metrics"}) EXPECT_TRUE(lines[6].contains(key)) << key;
}

// With no more than they must have, and with numbers that are none.
TEST(Records, AreValidForTheirJsonSchema) {
  StepRecord step;
  step.loss = std::numeric_limits<double>::quiet_NaN();
  std::vector<json> records = metrics_of(step, {});
  for (const json& line : metrics_of(test::full_step(), test::full_record(epoch_schema()))) {
    records.push_back(line);
  }
  records.push_back(json::parse(to_json(RunSummary{})));
  records.push_back(json_of(evaluation_report_schema(), {}));
  for (const json& record : records) EXPECT_EQ(json_schema().violation(record), "") << record;
  for (const json& record : records) {
    json more = record;
    more["unheard-of"] = 1;
    EXPECT_NE(json_schema().violation(more), "") << more;
    for (const auto& [key, value] : record.items()) {
      json other = record;
      other[key] = json::array({"of another type"});
      EXPECT_NE(json_schema().violation(other), "") << other;
    }
  }
  json less = records.front();
  less.erase("cores_left");
  EXPECT_THAT(json_schema().violation(less), HasSubstr("lacks cores_left"));
}

TEST(Records, HaveAllTheirColumnsInTheSummary) {
  RunSummary summary = test::full_record(summary_schema());
  summary.metrics_sha256 = "def";
  summary.end = RunEnd::stopped;
  summary.stopped = "the reason";
  summary.may_skip = true;
  expect_all(json::parse(to_json(summary)), summary_schema());
}

// Computed columns are the same if those that they are computed from are.
template <class Record>
void expect_read_back(const RecordSchema<Record>& schema, const Record& record) {
  const nlohmann::ordered_json written = json_of(schema, record);
  const Cells cells = cells_of(record_info(schema.name).columns, written.dump());
  nlohmann::ordered_json again = json_of(schema, record_of(schema, cells));
  // Only the summary of a running program has them.
  for (const char* key : {"kernels", "versions"}) {
    if (written.contains(key)) again[key] = written[key];
  }
  EXPECT_EQ(again, written);
}

TEST(Records, AreReadAsTheyAreWritten) {
  expect_read_back(step_schema(), test::full_step());
  expect_read_back(minibatch_schema(), test::full_record(minibatch_schema()));
  expect_read_back(epoch_schema(), test::full_record(epoch_schema()));
  expect_read_back(fault_schema(), test::full_record(fault_schema()));
  expect_read_back(monitor_schema(), test::full_record(monitor_schema()));
  RunSummary summary = test::full_record(summary_schema());
  summary.end = RunEnd::diverged;
  expect_read_back(summary_schema(), summary);
  expect_read_back(evaluation_report_schema(), test::full_record(evaluation_report_schema()));
  // And with as little as they can have.
  expect_read_back(epoch_schema(), {});
  expect_read_back(summary_schema(), {});
}

TEST(Records, HaveAllTheirColumnsInAnEvaluation) {
  expect_all(json_of(evaluation_report_schema(), test::full_record(evaluation_report_schema())),
             evaluation_report_schema());
}

// What progress prints of a full record.
template <class Tell>
std::string progress_of(const Tell& tell) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  Progress progress(progress_on(file.get()), {.log_steps = 1, .top_k = 3});
  tell(progress);
  std::string text(static_cast<std::size_t>(std::ftell(file.get())), '\0');
  std::rewind(file.get());
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file.get()), text.size());
  return text;
}

template <class Record>
void expect_labels(const std::string& text, const RecordSchema<Record>& schema,
                   const Record& record) {
  const std::vector<ShownField> fields = shown_fields(schema, record, 3);
  EXPECT_EQ(std::ssize(fields), std::ranges::count_if(schema.columns, [](const auto& column) {
              return !column.info().progress.label.empty();
            }));
  for (const auto& [label, value, progress] : fields) {
    EXPECT_THAT(text, HasSubstr("  " + label + " " + value));
  }
}

TEST(Records, AreShownByProgress) {
  const StepRecord step = test::full_step();
  test::MinibatchesOf training(16);
  expect_labels(progress_of([&](Progress& progress) { progress.on_step(training, step); }),
                step_schema(), step);
  const EpochRecord epoch = test::full_record(epoch_schema());
  expect_labels(progress_of([&](Progress& progress) { progress.on_epoch(training, epoch); }),
                epoch_schema(), epoch);
}

void save(TrainResult result, State& state) {
  StateVisitor visitor = StateVisitor::into(state);
  visit_result(visitor, result);
}

TrainResult loaded(const State& state) {
  TrainResult result;
  StateVisitor visitor = StateVisitor::out_of(state);
  visit_result(visitor, result);
  return result;
}

// A state has what the walk through the epochs does not know.
TEST(Records, AreKeptInStates) {
  const TrainResult result = test::full_record(result_schema());
  State state;
  save(result, state);
  const TrainResult again = loaded(state);
  std::size_t kept = 0;
  for (const auto& column : result_schema().columns) {
    if (!column.info().kept) continue;
    ++kept;
    EXPECT_TRUE(state.has(column.info().name) || state.has_text(column.info().name))
        << column.info().name;
    EXPECT_EQ(column.read(again), column.read(result)) << column.info().name;
  }
  EXPECT_EQ(kept, 4U);
  for (const auto& column : evaluation_schema().columns) {
    EXPECT_TRUE(state.has("final_test." + column.info().name)) << column.info().name;
    EXPECT_EQ(column.read(again.final_test.value()), column.read(result.final_test.value()))
        << column.info().name;
  }
  // What there is not is not there again.
  State empty;
  save({}, empty);
  EXPECT_EQ(empty.arrays().size(), 2U);
  EXPECT_EQ(loaded(empty).final_test.has_value(), false);
  EXPECT_EQ(loaded(empty).best_test_accuracy, std::nullopt);
  EXPECT_EQ(loaded(empty).stopped, "");
}

// A run without a library has null as the name of its kernels.
TEST(Records, MayHaveTextsThatAreNull) {
  const auto& columns = record_info(summary_schema().name).columns;
  const Cells cells = cells_of(columns, R"({"kernels": {"openblas": null, "aten": "AVX2"}})");
  const auto kernels = std::ranges::find(columns, "kernels", &ColumnInfo::name);
  ASSERT_NE(kernels, columns.end());
  const Cell& cell = cells.at(static_cast<std::size_t>(kernels - columns.begin()));
  EXPECT_EQ(std::get<NamedTexts>(cell), (NamedTexts{{"aten", "AVX2"}, {"openblas", ""}}));
}

}  // namespace
}  // namespace rubato
