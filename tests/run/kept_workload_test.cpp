#include "runs/run/workload/kept_workload.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

#include <gmock/gmock.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/records.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

constexpr auto kAtOnce = std::chrono::nanoseconds(0);
const std::string kRows = "a,b,label\n1,2,x\n3,4,y\n5,7,x\n2,2,y\n";

class KeptWorkloads : public testing::Test {
 protected:
  // Softmax regression on the table of the test, with a loader that counts its calls.
  [[nodiscard]] RunConfiguration run() const {
    return {.data = "csv:" + table_.string() + ",label=label",
            .validation = HeldOut{.share = 0.5, .seed = 1},
            .model = "softmax"};
  }
  [[nodiscard]] KeptWorkload kept(std::chrono::nanoseconds settling = kAtOnce) {
    return {run(),
            [this](const RunConfiguration& configuration) {
              ++loaded_;
              return dense_workload(configuration);
            },
            settling};
  }

  const test::TempFolder folder_;
  const fs::path table_ = folder_.write("table.csv", kRows);
  int loaded_ = 0;
};

TEST_F(KeptWorkloads, ServeRunsThatDifferInOtherOptions) {
  KeptWorkload workload = kept();
  workload.load();
  RunConfiguration other = run();
  other.rule = "root";
  other.seed = 7;
  other.epochs = 3;
  EXPECT_TRUE(workload.is_for(other));
  EXPECT_EQ(workload.workload_of(run()), workload.workload_of(other));
  EXPECT_EQ(loaded_, 1);
}

TEST_F(KeptWorkloads, LoadOthersForOtherDataAndModels) {
  KeptWorkload workload = kept();
  workload.load();
  RunConfiguration other = run();
  other.model = "mlp:hidden=3";
  EXPECT_FALSE(workload.is_for(other));
  EXPECT_NE(workload.workload_of(other), workload.workload_of(run()));
  other = run();
  other.validation = HeldOut{.share = 0.5, .seed = 2};
  EXPECT_FALSE(workload.is_for(other));
  EXPECT_NE(workload.workload_of(other), workload.workload_of(run()));
  EXPECT_EQ(loaded_, 3);
}

// Loading compares the data with options of other groups as well.
TEST_F(KeptWorkloads, RefuseWhatLoadingRefuses) {
  KeptWorkload workload = kept();
  workload.load();
  RunConfiguration other = run();
  other.metric = "mse";
  const std::string message = error_of([&] { return dense_workload(other); });
  EXPECT_THAT(message, HasSubstr("are classes"));
  EXPECT_EQ(error_of([&] { return workload.workload_of(other); }), message);
}

TEST_F(KeptWorkloads, AreLoadedAgainOnceAFileHasChanged) {
  KeptWorkload workload = kept();
  workload.load();
  EXPECT_TRUE(workload.is_current());
  const fs::file_time_type time = fs::last_write_time(table_);
  const std::int64_t samples = workload.workload_of(run())->samples();
  // Older kernels count the times of files in ticks of up to 10 ms.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  // It has as many bytes as before, and the same time of the last write.
  std::string rows = kRows;
  rows[rows.find('7')] = '8';
  folder_.write("table.csv", rows);
  fs::last_write_time(table_, time);
  EXPECT_FALSE(workload.is_current());
  folder_.write("table.csv", kRows + kRows.substr(kRows.find('1')));
  EXPECT_FALSE(workload.is_current());
  workload.load();
  EXPECT_TRUE(workload.is_current());
  EXPECT_EQ(workload.workload_of(run())->samples(), 2 * samples);
  EXPECT_EQ(loaded_, 2);
}

// A change that follows at once might not change the times of the file.
TEST_F(KeptWorkloads, WaitForFilesThatHaveJustChanged) {
  KeptWorkload workload = kept(std::chrono::hours(1));
  workload.load();
  EXPECT_TRUE(workload.is_current());
  EXPECT_EQ(loaded_, 0);
  EXPECT_EQ(workload.workload_of(run())->samples(), 2);
  EXPECT_EQ(loaded_, 1);
}

// The run itself is to say what is wrong.
TEST_F(KeptWorkloads, LeaveErrorsToTheRuns) {
  folder_.write("table.csv", "a,label\nnot a number,x\n");
  KeptWorkload workload = kept();
  workload.load();
  EXPECT_TRUE(workload.is_current());
  RunConfiguration other = run();
  other.seed = 5;
  EXPECT_EQ(error_of([&] { return workload.workload_of(other); }),
            error_of([&] { return dense_workload(other); }));
  fs::remove(table_);
  EXPECT_FALSE(workload.is_current());
  workload.load();
  EXPECT_THAT(error_of([&] { return workload.workload_of(other); }), HasSubstr("table.csv"));
}

TEST(WorkloadText, IsEqualForRunsWithTheSameWorkload) {
  EXPECT_EQ(workload_text({.model = "mlp", .rule = "root", .epochs = 3, .seed = 7}),
            workload_text({.model = "mlp"}));
  EXPECT_NE(workload_text({.model = "mlp"}), workload_text({.model = "softmax"}));
  EXPECT_NE(workload_text({.model = "mlp", .kernels = Kernels::portable}),
            workload_text({.model = "mlp"}));
}

}  // namespace
}  // namespace rubato
