// All readers of a run folder say the same about it: rubato watch, report, compare, plot, metrics,
// and programs that read its summary.

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>
#include <string>

#include <gmock/gmock.h>

#include <rubato/runs/records.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "runs/experiment/conduct/run_result.hpp"
#include "runs/page/run_facts.hpp"
#include "runs/page/thinned_run.hpp"
#include "runs/recorded/plot.hpp"
#include "runs/recorded/recorded_run.hpp"
#include "runs/report/metrics_export.hpp"
#include "support/full_record.hpp"
#include "support/no_training.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

constexpr int kSteps = 5;
constexpr std::int64_t kBatch = 96;
// These have no short representation, so a reader that rounds is noticed.
constexpr double kLoss = 1.0 / 3;
constexpr double kHours = 1.0 / 7;

// Writes what a run of `kSteps` steps in one epoch leaves that ends in this way. Its last loss is
// `kLoss`, or NaN if it diverges.
void write_run(const std::filesystem::path& folder, RunEnd end, const std::string& stopped) {
  const bool diverges = end == RunEnd::diverged;
  MetricsWriter metrics(folder / RunFolder::kMetrics);
  StepRecord step = test::full_step();
  step.applied = true;
  step.skipped = false;
  step.plan.batch_size = kBatch;
  for (int i = 0; i < kSteps; ++i) {
    const bool is_last = i + 1 == kSteps;
    step.plan.index = StepIndex{i};
    step.time->seconds = 3600 * kHours * (i + 1);
    step.loss = diverges && is_last ? std::nan("") : kLoss * (kSteps - i);
    step.applied = std::isfinite(step.loss);
    const std::array<FaultRecord, 1> faults{{{.core = CoreRank{1}, .substep = 1}}};
    metrics.on_fault(test::no_training, step.plan, faults, 1);
    metrics.on_step(test::no_training, step);
  }
  EpochRecord epoch;
  epoch.steps = kSteps;
  epoch.samples = kSteps * kBatch;
  epoch.test = Evaluation{.samples = 100, .loss = kLoss, .accuracy = kLoss};
  epoch.time = step.time;
  if (!diverges) metrics.on_epoch(test::no_training, epoch);
  RunSummary summary;
  summary.result.epochs = 1;
  summary.result.steps = kSteps;
  summary.result.samples = kSteps * kBatch;
  summary.result.time = step.time;
  if (!diverges) summary.result.final_test = epoch.test;
  summary.metrics_sha256 = metrics.sha256();
  summary.end = end;
  summary.stopped = stopped;
  write_file(folder / RunFolder::kSummary, to_json(summary));
}

struct Ending {
  RunEnd end;
  std::string stopped;
  std::string on_page;
  ResultEnd result;

  friend std::ostream& operator<<(std::ostream& out, const Ending& of) { return out << of.on_page; }
};

class Readers : public testing::TestWithParam<Ending> {};

TEST_P(Readers, AgreeOnAFolder) {
  const auto& [end, stopped, on_page, kind] = GetParam();
  const bool diverges = end == RunEnd::diverged;
  const test::TempFolder folder;
  write_run(folder.path(), end, stopped);

  RecordedRun watched(folder.path());
  watched.update();
  EXPECT_EQ(watched.view().step, kSteps);
  EXPECT_EQ(watched.view().samples, kSteps * kBatch);
  EXPECT_EQ(std::isnan(watched.view().loss), diverges);
  EXPECT_EQ(watched.view().stopped, stopped);

  const page::ThinnedRun page = page::read_run(folder.path().string(), 100);
  EXPECT_THAT(page.warnings, testing::IsEmpty());
  EXPECT_EQ(page.last[page::Axis::steps], kSteps);
  EXPECT_EQ(page.last[page::Axis::samples], kSteps * kBatch);
  EXPECT_EQ(page.last[page::Axis::hours], kHours * kSteps);
  EXPECT_EQ(page::end_of(page), on_page);
  EXPECT_EQ(page.mark_counts[0], kSteps) << "faults";

  const RunResult result = read_result(folder.path(), Measure{.is_accuracy = true, .chance = 0.1});
  EXPECT_EQ(result.last.steps, kSteps);
  EXPECT_EQ(result.last.samples, kSteps * kBatch);
  EXPECT_EQ(result.last.hours, kHours * kSteps);
  EXPECT_EQ(result.end, kind);
  EXPECT_EQ(result.elasticity->most_batch, kBatch);

  const auto losses = recorded_curve(folder.path(), curve_column("loss"), CurveOver::hours);
  ASSERT_EQ(losses.size(), kSteps);
  EXPECT_EQ(losses.back().x, kHours * kSteps);
  EXPECT_EQ(std::isnan(losses.back().y), diverges);

  std::string csv;
  write_metrics_csv(folder.path() / RunFolder::kMetrics, "step",
                    [&](std::string_view bytes) { csv += bytes; });
  EXPECT_EQ(std::ranges::count(csv, '\n'), kSteps + 1);

  const RunSummary summary = read_summary(folder.path() / RunFolder::kSummary);
  EXPECT_EQ(summary.result.steps, kSteps);
  EXPECT_EQ(summary.end, end);
  if (diverges) return;
  EXPECT_EQ(watched.view().loss, kLoss);
  EXPECT_EQ(losses.back().y, kLoss);
  EXPECT_EQ(watched.view().test, kLoss);
  EXPECT_EQ(page::final_value(page, "test_accuracy"), kLoss);
  EXPECT_EQ(result.best_value, kLoss);
}

INSTANTIATE_TEST_SUITE_P(
    Ends, Readers,
    testing::Values(Ending{RunEnd::completed, "", "complete", ResultEnd::finished},
                    Ending{RunEnd::completed, "480 samples reached", "complete",
                           ResultEnd::finished},
                    Ending{RunEnd::stopped, "no better for 3 epochs", "no better for 3 epochs",
                           ResultEnd::finished},
                    Ending{RunEnd::out_of_devices, "out of devices", "out of devices",
                           ResultEnd::out_of_devices},
                    Ending{RunEnd::diverged, "step 5: the loss is nan", "step 5: the loss is nan",
                           ResultEnd::diverged}),
    [](const auto& ending) { return "Number" + std::to_string(ending.index); });

}  // namespace
}  // namespace rubato
