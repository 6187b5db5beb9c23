#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/base/state.hpp>
#include <rubato/runs/records.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/seconds.hpp"
#include "base/state/sha256.hpp"
#include "support/error_of.hpp"
#include "support/file_calls.hpp"
#include "support/matchers.hpp"
#include "support/no_training.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using test::no_training;

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

TEST_F(Checkpoints, AreAtLeastOneAndAtLeastOneApart) {
  EXPECT_EQ(error_of([&] { CheckpointFolder(path_, 0); }),
            "0 checkpoints to keep: at least 1 is needed");
  EXPECT_EQ(error_of([&] {
              Checkpointer(folder_, {.count = 0, .unit = CheckpointInterval::Unit::epochs});
            }),
            "a checkpoint every 0 epochs: at least 1 is needed");
}

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

// A folder whose name is not on the disk is gone after a power failure, with all that is in it.
TEST_F(Checkpoints, AreInAFolderWhoseNameIsOnTheDisk) {
  test::FileCalls calls(temp_.path());
  const std::string file = "checkpoints/step-7.safetensors";
  CheckpointFolder folder(calls.folder() / "checkpoints", 2);
  folder.write(7, state_of(7));
  EXPECT_THAT(calls.log(), ElementsAre("fsync .", "fsync " + file + ".part",
                                       "rename " + file + ".part " + file, "fsync checkpoints"));
  calls.clear();
  folder.write(7, state_of(7));
  EXPECT_EQ(calls.log().front(), "fsync " + file + ".part") << "its name was there";
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

// It is not damaged, and what it would be passed over for is older.
TEST_F(Checkpoints, OneOfANewerVersionIsNotPassedOver) {
  folder_.write(1, state_of(1));
  folder_.write(2, state_of(2));
  std::string bytes = test::read_file(path_ / "step-2.safetensors");
  const std::string version = R"("rubato.version":"1")";
  bytes.replace(bytes.find(version), version.size(), R"("rubato.version":"2")");
  // Its checksum, which the last bytes are, is right.
  bytes.resize(bytes.size() - 32);
  for (const std::uint8_t byte : Sha256::digest_of(bytes)) bytes += static_cast<char>(byte);
  std::ofstream(path_ / "step-2.safetensors", std::ios::binary) << bytes;
  EXPECT_THAT(error_of([&] { return newest(); }),
              HasSubstr("is of version 2, which a newer rubato has written"));
  EXPECT_THAT(rejected_, IsEmpty());
}

TEST_F(Checkpoints, NothingIsRemovedWhenOneCannotBeWritten) {
  folder_.write(1, state_of(1));
  folder_.write(2, state_of(2));
  fs::create_directory(path_ / "step-3.safetensors");
  EXPECT_THAT(error_of([&] { folder_.write(3, state_of(3)); }), HasSubstr("cannot write"));
  EXPECT_EQ(newest(), 2);
  EXPECT_TRUE(fs::exists(path_ / "step-1.safetensors"));
}

TEST_F(Checkpoints, AreKeptOfAnotherThreadWhereTheyAreNewer) {
  Checkpointer checkpointer(folder_, {.count = 1, .unit = CheckpointInterval::Unit::epochs});
  checkpointer.write(5, state_of(5));
  EXPECT_FALSE(checkpointer.keep(4, state_of(40)));
  EXPECT_FALSE(checkpointer.keep(5, state_of(50))) << "there is one of as many steps";
  EXPECT_THAT(names(), ElementsAre("step-5.safetensors"));
  EXPECT_EQ(newest(), 5);
  EXPECT_EQ(checkpointer.keep(6, state_of(6)), path_ / "step-6.safetensors");
  EXPECT_EQ(newest(), 6);
}

// A training of which only the steps are asked for.
class CountedTraining final : public test::NoTraining {
 public:
  [[nodiscard]] const TrainResult& result() const override { return result_; }
  [[nodiscard]] State state() const override { return {}; }
  void set_steps(std::int64_t steps) { result_.steps = steps; }

 private:
  TrainResult result_;
};

// Each interval begins with the checkpoint before it.
TEST_F(Checkpoints, AreWrittenOnceInEachIntervalOfTime) {
  // False where the machine took a whole interval for what takes no time, which proves nothing.
  const auto proved = [this] {
    Checkpointer checkpointer(CheckpointFolder(path_, 1),
                              {.count = 1, .unit = CheckpointInterval::Unit::seconds});
    CountedTraining training;
    Stopwatch since;
    const auto step = [&](std::int64_t steps) {
      training.set_steps(steps);
      checkpointer.between_steps(training);
      return since.seconds() < 1;
    };
    if (!step(1)) return false;
    EXPECT_THAT(names(), IsEmpty());
    std::this_thread::sleep_for(std::chrono::milliseconds(1010));
    since = {};
    step(2);
    EXPECT_THAT(names(), ElementsAre("step-2.safetensors"));
    if (!step(3)) return false;
    EXPECT_THAT(names(), ElementsAre("step-2.safetensors"));
    return true;
  };
  bool is_proved = false;
  for (int attempt = 0; attempt < 10 && !is_proved; ++attempt) {
    is_proved = proved();
    fs::remove_all(path_);
  }
  EXPECT_TRUE(is_proved);
}

// Written when so many are over, not before; what the others count is of no matter.
TEST(Checkpointer, WritesWhenItsIntervalIsOver) {
  using Unit = CheckpointInterval::Unit;
  for (const Unit unit : {Unit::steps, Unit::epochs}) {
    const test::TempFolder folder;
    int before_writing = 0;
    Checkpointer checkpointer(CheckpointFolder(folder.path() / "checkpoints", 100),
                              {.count = 3, .unit = unit}, [&] { ++before_writing; });
    CountedTraining training;
    const CheckpointFolder written(folder.path() / "checkpoints", 100);
    for (int i = 1; i <= 9; ++i) {
      training.set_steps(i);
      if (unit == Unit::steps) checkpointer.on_step(training, {});
      if (unit == Unit::epochs) checkpointer.on_epoch(training, {});
      // Many of the other.
      for (int k = 0; k < 5; ++k) {
        if (unit == Unit::steps) checkpointer.on_epoch(training, {});
        if (unit == Unit::epochs) checkpointer.on_step(training, {});
      }
      checkpointer.between_steps(training);
      EXPECT_EQ(written.files().size(), static_cast<std::size_t>(i / 3)) << i;
      EXPECT_EQ(before_writing, i / 3);
      // One that is written for another reason begins an interval, too.
      if (i == 9) static_cast<void>(checkpointer.write(100, {}));
    }
    for (int i = 0; i < 2; ++i) {
      checkpointer.on_step(training, {});
      checkpointer.on_epoch(training, {});
      checkpointer.between_steps(training);
    }
    EXPECT_EQ(written.files().size(), 4U);
    EXPECT_EQ(written.files().front().filename(), "step-100.safetensors");
    // None any more, though one is due.
    checkpointer.hold();
    training.set_steps(10);
    checkpointer.on_step(training, {});
    checkpointer.on_epoch(training, {});
    checkpointer.between_steps(training);
    EXPECT_EQ(written.files().size(), 4U);
  }
}

TEST(CheckpointFolder, KnowsItsFilesByTheirNames) {
  const auto steps = [](const char* name) { return CheckpointFolder::steps_of(name); };
  EXPECT_EQ(steps("step-0.safetensors"), 0);
  EXPECT_EQ(steps("folder/step-123.safetensors"), 123);
  for (const char* other : {"step-.safetensors", "step--1.safetensors", "step-1x.safetensors",
                            "step-1.safetensors.part", "step-1", "1.safetensors",
                            "Step-1.safetensors", "step-99999999999999999999.safetensors"}) {
    EXPECT_EQ(steps(other), std::nullopt) << other;
  }
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
    state = state_of(metrics, no_training);
    line(metrics, 1);
    whole = text();
    line(metrics, 2);
  }
  const std::string all = text();
  MetricsWriter metrics(file_, true);
  load_state(metrics, state, no_training);
  EXPECT_EQ(text(), all) << "loading changes no file";
  line(metrics, 1);
  EXPECT_EQ(text(), whole);
  const State later = state_of(metrics, no_training);
  EXPECT_EQ(later.value<std::int64_t>("bytes"), static_cast<std::int64_t>(whole.size()));
}

TEST_F(MetricsState, LinesThatWereLostAreAnError) {
  State state;
  {
    MetricsWriter metrics(file_);
    line(metrics, 0);
    state = state_of(metrics, no_training);
  }
  fs::resize_file(file_, 10);
  MetricsWriter metrics(file_, true);
  EXPECT_THAT(error_of([&] { load_state(metrics, state, no_training); }),
              HasSubstr("has 10 bytes, less than the"));
}

TEST_F(MetricsState, FlushSeesWhetherTheFileIsStillThere) {
  MetricsWriter metrics(file_);
  line(metrics, 0);
  metrics.flush();
  fs::remove(file_);
  EXPECT_THAT(error_of([&] { metrics.flush(); }), HasSubstr("has gone"));
  std::ofstream(file_) << "another";
  EXPECT_THAT(error_of([&] { metrics.flush(); }), HasSubstr("is no longer the file"));
}

}  // namespace
}  // namespace rubato
