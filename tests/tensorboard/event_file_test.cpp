#include <cmath>
#include <csignal>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <rubato/runs/tensorboard.hpp>

#include "support/error_of.hpp"
#include "support/file_calls.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"
#include "tensorboard/event_reader.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using test::read_events;
using test::ReadEvent;
using testing::Pair;

class EventFiles : public testing::Test {
 protected:
  [[nodiscard]] fs::path path() const { return folder_.path() / "events.out.tfevents.0"; }

 private:
  test::TempFolder folder_;
};

// Of RFC 3720: CRC-32C, and what the format makes of it.
TEST(EventReader, KnowsTheChecksum) {
  constexpr std::uint32_t kOfDigits = 0xe3069283;
  EXPECT_EQ(test::masked_crc32c("123456789"), ((kOfDigits >> 15) | (kOfDigits << 17)) + 0xa282ead8);
}

TEST_F(EventFiles, BeginWithTheVersion) {
  const EventFile file(path());
  const std::vector<ReadEvent> events = read_events(path());
  ASSERT_EQ(events.size(), 1U) << "it is there before anything else is written";
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_GT(events[0].wall_time, 1.6e9);
}

TEST_F(EventFiles, BringTheirEventsAndTheirNameToTheDisk) {
  test::FileCalls calls(path().parent_path());
  EventFile file(calls.folder() / "events");
  EXPECT_THAT(calls.log(), ElementsAre());
  file.sync();
  EXPECT_THAT(calls.log(), ElementsAre("fsync events", "fsync ."));
  calls.clear();
  file.sync();
  EXPECT_THAT(calls.log(), ElementsAre("fsync events")) << "the name is there";
}

TEST_F(EventFiles, KeepScalars) {
  EventFile file(path());
  const std::vector<Scalar> first{{"train/loss", 0.5}, {"lr", 1e-3}};
  file.write_scalars(7, first);
  // Fewer, and shorter, after it.
  const std::vector<Scalar> second{{"x", std::numeric_limits<double>::quiet_NaN()}};
  file.write_scalars(std::int64_t{1} << 40, second);
  file.flush();
  const std::vector<ReadEvent> events = read_events(path());
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[1].step, 7);
  EXPECT_THAT(events[1].scalars, ElementsAre(Pair("train/loss", 0.5F), Pair("lr", 1e-3F)));
  EXPECT_EQ(events[2].step, std::int64_t{1} << 40);
  ASSERT_EQ(events[2].scalars.size(), 1U);
  EXPECT_EQ(events[2].scalars[0].first, "x");
  EXPECT_TRUE(std::isnan(events[2].scalars[0].second));
  EXPECT_GE(events[2].wall_time, events[1].wall_time);
}

TEST_F(EventFiles, KeepHistogramsAndRestarts) {
  EventFile file(path());
  const Histogram histogram{.min = -1,
                            .max = 3,
                            .count = 5,
                            .sum = 4,
                            .sum_of_squares = 12,
                            .limits = {-1, 0, 4},
                            .counts = {1, 0, 4}};
  file.write_histogram(3, "weights/w", histogram);
  file.write_restart(9);
  file.write_scalars(9, std::vector<Scalar>{{"a", 1}});
  file.flush();
  const std::vector<ReadEvent> events = read_events(path());
  ASSERT_EQ(events.size(), 4U);
  ASSERT_EQ(events[1].histograms.size(), 1U);
  const auto& [tag, read] = events[1].histograms[0];
  EXPECT_EQ(events[1].step, 3);
  EXPECT_EQ(tag, "weights/w");
  EXPECT_EQ(read.min, -1);
  EXPECT_EQ(read.max, 3);
  EXPECT_EQ(read.num, 5);
  EXPECT_EQ(read.sum, 4);
  EXPECT_EQ(read.sum_squares, 12);
  EXPECT_THAT(read.limits, ElementsAre(-1, 0, 4));
  EXPECT_THAT(read.counts, ElementsAre(1, 0, 4));
  EXPECT_TRUE(events[2].restart);
  EXPECT_EQ(events[2].step, 9);
  EXPECT_FALSE(events[3].restart);
  EXPECT_TRUE(events[3].histograms.empty());
}

TEST_F(EventFiles, KeepASession) {
  EventFile file(path());
  const std::vector<Hyperparameter> hyperparameters{
      {"rule", std::string("adascale")}, {"lr", 0.0}, {"nesterov", false}, {"exact", true}};
  file.write_hyperparameters(hyperparameters);
  file.write_end(true);
  file.write_end(false);
  file.flush();
  const std::vector<ReadEvent> events = read_events(path());
  ASSERT_EQ(events.size(), 4U);
  ASSERT_TRUE(events[1].hparams);
  EXPECT_EQ(events[1].hparams->values.size(), 4U);
  EXPECT_EQ(std::get<std::string>(events[1].hparams->values.at("rule")), "adascale");
  EXPECT_EQ(std::get<double>(events[1].hparams->values.at("lr")), 0);
  EXPECT_FALSE(std::get<bool>(events[1].hparams->values.at("nesterov")));
  EXPECT_TRUE(std::get<bool>(events[1].hparams->values.at("exact")));
  EXPECT_EQ(events[1].hparams->start_seconds, events[1].wall_time);
  ASSERT_TRUE(events[2].hparams && events[3].hparams);
  EXPECT_EQ(events[2].hparams->end_status, 1) << "success";
  EXPECT_EQ(events[3].hparams->end_status, 2) << "failure";
}

TEST_F(EventFiles, KeepTheColumnsOfAnExperiment) {
  EventFile file(path());
  const std::vector<HyperparameterColumn> columns{{"rule", HyperparameterType::text},
                                                  {"nesterov", HyperparameterType::flag},
                                                  {"lr", HyperparameterType::number}};
  const std::vector<std::string> metrics{"test/accuracy", "test/loss"};
  file.write_experiment(columns, metrics);
  file.flush();
  const std::vector<ReadEvent> events = read_events(path());
  ASSERT_EQ(events.size(), 2U);
  ASSERT_TRUE(events[1].hparams);
  EXPECT_THAT(events[1].hparams->columns,
              ElementsAre(Pair("rule", 1), Pair("nesterov", 2), Pair("lr", 3)));
  EXPECT_EQ(events[1].hparams->metrics, metrics);
}

// Whenever it is looked at, it has whole records, and in the end all of them.
TEST_F(EventFiles, HaveWholeRecordsAtAllTimes) {
  constexpr std::int64_t kSteps = 20'000;
  std::size_t looks = 0;
  {
    EventFile file(path());
    std::uintmax_t size = 0;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      file.write_scalars(step, std::vector<Scalar>{{"a", 1}, {"b", 2}});
      if (fs::file_size(path()) == size) continue;
      size = fs::file_size(path());
      ++looks;
      EXPECT_LE(read_events(path()).size(), static_cast<std::size_t>(step) + 2);
    }
    EXPECT_GT(file.bytes(), 0);
  }
  EXPECT_GE(looks, 10U) << "a file of a megabyte goes out in parts";
  const std::vector<ReadEvent> events = read_events(path());
  ASSERT_EQ(events.size(), kSteps + 1U);
  for (std::int64_t step = 0; step < kSteps; ++step) {
    ASSERT_EQ(events[static_cast<std::size_t>(step) + 1].step, step);
  }
}

TEST_F(EventFiles, CountTheBytesThatWait) {
  EventFile file(path());
  const auto before = file.bytes();
  EXPECT_EQ(before, static_cast<std::int64_t>(fs::file_size(path())));
  file.write_scalars(1, std::vector<Scalar>{{"a", 1}});
  const auto after = file.bytes();
  EXPECT_GT(after, before);
  file.sync();
  EXPECT_EQ(file.bytes(), after);
  EXPECT_EQ(after, static_cast<std::int64_t>(fs::file_size(path())));
}

TEST_F(EventFiles, AreGoodUpToWhereTheDiskWasFull) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  std::int64_t whole = 0;
  {
    EventFile file(path());
    file.write_scalars(1, std::vector<Scalar>{{"a", 1}});
    file.flush();
    whole = file.bytes();
    // Part of the next event has room.
    const rlimit limit{.rlim_cur = static_cast<rlim_t>(whole) + 10, .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    const std::string error = error_of([&] {
      file.write_scalars(2, std::vector<Scalar>{{"b", 2}});
      file.flush();
    });
    EXPECT_THAT(error, HasSubstr("events.out.tfevents.0: cannot write: File too large"));
    EXPECT_EQ(static_cast<std::int64_t>(fs::file_size(path())), whole);
    // It goes on where there is room again.
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    file.write_scalars(3, std::vector<Scalar>{{"c", 3}});
  }
  std::signal(SIGXFSZ, ignored);
  const std::vector<ReadEvent> events = read_events(path());
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[3].step, 3);
}

TEST_F(EventFiles, ThatCannotBeWrittenAreAnError) {
  EXPECT_THAT(error_of([&] { const EventFile file("/nowhere/events.out.tfevents.0"); }),
              HasSubstr("/nowhere/events.out.tfevents.0: cannot write: No such file"));
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  EXPECT_THAT(error_of([&] { const EventFile file("/dev/full"); }), HasSubstr("No space left"));
}

TEST_F(EventFiles, ThatHaveGoneAreAnError) {
  EventFile file(path());
  fs::remove(path());
  EXPECT_THAT(error_of([&] { file.sync(); }), HasSubstr("has gone while it was written to"));
  test::TempFolder other;
  fs::copy_file(other.write("short", "x"), path());
  EXPECT_THAT(error_of([&] { file.sync(); }),
              HasSubstr("is no longer the file that was written to"));
}

}  // namespace
}  // namespace rubato
