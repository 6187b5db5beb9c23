#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/report/checkpoints.hpp>
#include <rubato/report/metrics.hpp>
#include <rubato/state/state_file.hpp>

#include "support/error_of.hpp"
#include "support/no_training.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

test::NoTraining no_training;

namespace fs = std::filesystem;
using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class Checkpoints : public testing::Test {
 protected:
  static State state_of(std::int64_t number) {
    State state;
    state.put("number", number);
    return state;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const fs::path& file : folder_.files()) names.push_back(file.filename());
    return names;
  }
  [[nodiscard]] std::int64_t newest() {
    rejected_.clear();
    const auto found = folder_.newest([this](const std::string& why) { rejected_.push_back(why); });
    return found ? found->state.value<std::int64_t>("number") : -1;
  }

  test::TempFolder temp_;
  fs::path path_ = temp_.path() / "checkpoints";
  CheckpointFolder folder_{path_, 2};
  std::vector<std::string> rejected_;
};

TEST_F(Checkpoints, TheNewestAreKept) {
  EXPECT_EQ(newest(), -1);
  for (const std::int64_t steps : {9, 10, 100}) folder_.write(steps, state_of(steps));
  EXPECT_THAT(names(), ElementsAre("step-100.safetensors", "step-10.safetensors"));
  EXPECT_EQ(newest(), 100);
  // Not one of them, and what a process left that was killed.
  std::ofstream(path_ / "step-x.safetensors") << "?";
  std::ofstream(path_ / "step-7.safetensors.part") << "?";
  folder_.write(101, state_of(101));
  EXPECT_THAT(names(), ElementsAre("step-101.safetensors", "step-100.safetensors"));
  EXPECT_FALSE(fs::exists(path_ / "step-7.safetensors.part"));
  EXPECT_TRUE(fs::exists(path_ / "step-x.safetensors"));
}

TEST_F(Checkpoints, WhatIsDamagedIsPassedOver) {
  folder_.write(1, state_of(1));
  folder_.write(2, state_of(2));
  fs::resize_file(path_ / "step-2.safetensors", 50);
  EXPECT_EQ(newest(), 1);
  EXPECT_THAT(rejected_, ElementsAre(HasSubstr("step-2.safetensors: damaged")));
  fs::resize_file(path_ / "step-1.safetensors", 0);
  EXPECT_EQ(newest(), -1);
  EXPECT_THAT(rejected_, SizeIs(2));
}

TEST_F(Checkpoints, NothingIsRemovedWhenOneCannotBeWritten) {
  folder_.write(1, state_of(1));
  folder_.write(2, state_of(2));
  fs::create_directory(path_ / "step-3.safetensors");
  EXPECT_THAT(error_of([&] { folder_.write(3, state_of(3)); }), HasSubstr("cannot write"));
  EXPECT_EQ(newest(), 2);
  EXPECT_TRUE(fs::exists(path_ / "step-1.safetensors"));
}

class MetricsState : public testing::Test {
 protected:
  static void line(MetricsWriter& metrics, std::int64_t step) {
    StepRecord record;
    record.plan.index = StepIndex{step};
    record.plan.cores = 1;
    record.plan.minibatches = 1;
    metrics.on_step(no_training, record);
  }
  [[nodiscard]] std::string text() const { return test::read_file(file_); }

  test::TempFolder temp_;
  fs::path file_ = temp_.path() / "metrics.jsonl";
};

TEST_F(MetricsState, WhatCameAfterTheStateIsCutOff) {
  State state;
  std::string whole;
  {
    MetricsWriter metrics(file_);
    line(metrics, 0);
    metrics.save(state);
    line(metrics, 1);
    whole = text();
    line(metrics, 2);
  }
  MetricsWriter metrics(file_, true);
  metrics.load(no_training, state);
  line(metrics, 1);
  EXPECT_EQ(text(), whole);
  State later;
  metrics.save(later);
  EXPECT_EQ(later.value<std::int64_t>("metrics.bytes"), static_cast<std::int64_t>(whole.size()));
}

TEST_F(MetricsState, LinesThatWereLostAreAnError) {
  State state;
  {
    MetricsWriter metrics(file_);
    line(metrics, 0);
    metrics.save(state);
  }
  fs::resize_file(file_, 10);
  MetricsWriter metrics(file_, true);
  EXPECT_THAT(error_of([&] { metrics.load(no_training, state); }),
              HasSubstr("has 10 bytes, less than the"));
}

TEST_F(MetricsState, FlushSeesWhetherTheFileIsStillThere) {
  MetricsWriter metrics(file_);
  line(metrics, 0);
  metrics.flush();
  fs::remove(file_);
  EXPECT_THAT(error_of([&] { metrics.flush(); }), HasSubstr("has gone"));
  std::ofstream(file_) << "another";
  EXPECT_THAT(error_of([&] { metrics.flush(); }), HasSubstr("is not the file"));
}

}  // namespace
}  // namespace rubato
