#include "runs/recorded/recorded_run.hpp"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <gmock/gmock.h>

#include <rubato/base/error.hpp>

#include "recorded/lines.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using test::epoch_line;
using test::step_line;
using testing::ThrowsMessage;

using Phase = RunView::Phase;

class RecordedRunTest : public testing::Test {
 protected:
  void append(std::string_view text) const {
    std::ofstream(folder_.path() / "metrics.jsonl", std::ios::app) << text;
  }
  const RunView& view() {
    run_.update();
    return run_.view();
  }

  test::TempFolder folder_;
  RecordedRun run_{folder_.path()};
};

TEST_F(RecordedRunTest, MayHaveNothingYet) {
  EXPECT_EQ(view().step, 0);
  EXPECT_FALSE(view().done);
  EXPECT_FALSE(run_.has_ended());
}

TEST_F(RecordedRunTest, IsSeenAsItGrows) {
  folder_.write("config.toml", "model = \"softmax\"\nepochs = 4\n");
  append(step_line(0, 0, 2));
  EXPECT_EQ(view().epochs, 4);
  EXPECT_EQ(view().step, 1);
  EXPECT_EQ(view().loss, 2);
  EXPECT_EQ(view().batch, 64);
  EXPECT_EQ(view().cores, 2);
  EXPECT_EQ(view().busy, 1);
  EXPECT_EQ(view().learning_rate, 0.25);
  EXPECT_EQ(view().gain, 1.5);
  EXPECT_DOUBLE_EQ(view().rate.value(), 128);
  EXPECT_FALSE(view().done) << "nobody knows how long an epoch is";
  EXPECT_FALSE(view().test);

  append(step_line(1, 0) + epoch_line(0, 2, 0.75));
  EXPECT_EQ(view().epoch, 2);
  EXPECT_EQ(view().done, 0.25);
  EXPECT_EQ(view().test, 0.75);
  // An epoch takes a second and a half, of which a test has half a second.
  EXPECT_DOUBLE_EQ(view().seconds_left.value(), 4.5);
  const std::string next = step_line(2, 1);
  append(next.substr(0, 40));
  EXPECT_EQ(view().step, 2) << "the line is not there yet";
  append(next.substr(40));
  EXPECT_EQ(view().step, 3);
  EXPECT_EQ(view().done, 0.375);
  EXPECT_EQ(view().losses.curve(8, 512).size(), 4U);
}

// Training that ends in the middle of an epoch evaluates that part of it.
TEST_F(RecordedRunTest, CountsNoPartOfAnEpochForAWholeOne) {
  folder_.write("config.toml", "epochs = 4\n");
  std::string part = epoch_line(0, 1, 0.5);
  part.replace(part.find(R"("epoch":0)"), 9, R"("epoch":0,"whole":false)");
  append(step_line(0, 0) + part);
  EXPECT_EQ(view().test, 0.5);
  EXPECT_FALSE(view().done) << "nobody knows how long an epoch is";
  EXPECT_EQ(view().epoch, 1);
}

// As `rubato train --resume RUN --epochs 2` leaves it: from the checkpoint of the first step.
TEST_F(RecordedRunTest, GoesOnFromACheckpoint) {
  folder_.write("config.toml", "epochs = 1\n");
  append(step_line(0, 0, 2) + step_line(1, 0, 1) + epoch_line(0, 2, 0.75));
  folder_.write("summary.json", R"({"wall_seconds": 1.5, "stopped": null})");
  EXPECT_EQ(view().step, 2);
  EXPECT_TRUE(run_.has_ended());
  EXPECT_EQ(view().phase_seconds, 1.5);

  fs::remove(folder_.path() / "summary.json");
  folder_.write("config.toml", "epochs = 10\n");
  fs::last_write_time(folder_.path() / "config.toml", fs::file_time_type::clock::now());
  fs::resize_file(folder_.path() / "metrics.jsonl", step_line(0, 0, 2).size());
  append(step_line(1, 0, 0.5));
  EXPECT_EQ(view().step, 2);
  EXPECT_EQ(view().loss, 0.5);
  EXPECT_EQ(view().samples, 128) << "none is counted twice";
  EXPECT_EQ(view().epochs, 10);
  EXPECT_FALSE(view().test) << "of the epoch that is not over any more";
  EXPECT_FALSE(view().done) << "likewise";
  EXPECT_FALSE(run_.has_ended());
}

// Steps that were taken before, on a slower machine, say nothing of what is to come.
TEST_F(RecordedRunTest, GoesOnWithThePaceOfItsOwnSteps) {
  folder_.write("config.toml", "epochs = 2\n");
  append(step_line(0, 0, 2, 100) + step_line(1, 0, 2, 100) + epoch_line(0, 2, 0.5) +
         step_line(2, 1, 2, 100));
  EXPECT_LT(view().rate.value(), 1);
  EXPECT_GT(view().seconds_left.value(), 60);
  // Another step in the place of the first: the run begins anew.
  fs::resize_file(folder_.path() / "metrics.jsonl", 0);
  append(step_line(0, 0, 1, 0.5) + step_line(1, 0, 1, 0.5) + epoch_line(0, 2, 0.5));
  EXPECT_DOUBLE_EQ(view().rate.value(), 128);
  EXPECT_DOUBLE_EQ(view().seconds_left.value(), 1.5) << "as long as the first epoch and its test";
}

// Whichever comes first ends the run.
TEST_F(RecordedRunTest, IsDoneAsFarAsItsEpochsOrItsBudgetAre) {
  folder_.write("config.toml", "epochs = 4\nsamples = 1000000\n");
  append(step_line(0, 0) + step_line(1, 0) + epoch_line(0, 2, 0.5));
  EXPECT_EQ(view().done, 0.25) << "of the epochs, not of a million samples";
  folder_.write("config.toml", "epochs = 4\nsamples = 256\n");
  fs::last_write_time(folder_.path() / "config.toml",
                      fs::file_time_type::clock::now() + std::chrono::seconds(1));
  EXPECT_EQ(view().done, 0.5) << "128 of 256 samples";
}

TEST_F(RecordedRunTest, SaysWhyItEnded) {
  append(step_line(0, 0));
  folder_.write("summary.json",
                R"({"wall_seconds": 1.5, "stopped": "100 samples \u001b[2Jreached\nand more"})");
  EXPECT_EQ(view().phase, Phase::ended);
  EXPECT_EQ(view().stopped, "100 samples ?[2Jreached") << "what steers no terminal";
}

TEST_F(RecordedRunTest, IsSilentWhereNothingComes) {
  append(step_line(0, 0));
  EXPECT_EQ(view().phase, Phase::training);
  fs::last_write_time(folder_.path() / "metrics.jsonl",
                      fs::file_time_type::clock::now() - std::chrono::seconds(75));
  EXPECT_EQ(view().phase, Phase::silent);
  EXPECT_NEAR(view().phase_seconds, 75, 10);
}

TEST_F(RecordedRunTest, HasABudgetOfModelledTime) {
  folder_.write("config.toml", "epochs = 1000\nhours = 2.0\n");
  append(
      R"({"kind":"step","step":0,"epoch":0,"batch":64,"cores":2,"lr":0.5,"gain":1,"iterations":1,)"
      R"("loss":null,"clock":{"hours":0.5,"money":3.5},"seconds":{"wall":1.0}})"
      "\n");
  EXPECT_EQ(view().done, 0.25);
  EXPECT_EQ(view().seconds_left, 3);
  EXPECT_EQ(view().hours, 0.5);
  EXPECT_EQ(view().money, 3.5);
  EXPECT_TRUE(std::isnan(view().loss));
}

// What its configuration names is not loaded: whoever watches may trust it less than who trains.
TEST_F(RecordedRunTest, LoadsNoPlugin) {
  folder_.write("config.toml", "plugin = \"/nowhere/parts.so\"\nepochs = 3\n");
  EXPECT_EQ(view().epochs, 3);
}

TEST_F(RecordedRunTest, SaysWhereItIsNone) {
  append(step_line(0, 0) + "no JSON\n");
  EXPECT_THAT([&] { run_.update(); },
              ThrowsMessage<Error>(HasSubstr(
                  "metrics.jsonl:2: is not a line of metrics; accepted: what a run has ")));
}

TEST_F(RecordedRunTest, SaysWhichSummaryIsNone) {
  folder_.write("summary.json", "{");
  EXPECT_THAT([&] { run_.update(); },
              ThrowsMessage<Error>(HasSubstr("summary.json: not a summary of a run (")));
}

TEST_F(RecordedRunTest, SaysWhichConfigurationIsNone) {
  folder_.write("config.toml", "epochs = \"many\"\n");
  EXPECT_THAT([&] { run_.update(); }, ThrowsMessage<Error>(HasSubstr("epochs: ")));
}

}  // namespace
}  // namespace rubato
