// The events of a trace, and the trace without some of them.

#include "runs/whatif/run_events.hpp"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/core/file.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

constexpr std::int64_t kSamples = 1'000;

class RunEventsTest : public testing::Test {
 protected:
  // The events of a run that has taken so many steps of this trace.
  [[nodiscard]] RunEvents events(const std::string& rows, std::int64_t steps,
                                 TraceEnd end = TraceEnd::hold) const {
    write_file(temp_.path() / "trace.csv", rows);
    RunConfiguration run{.trace = (temp_.path() / "trace.csv").string(), .on_trace_end = end};
    RecordedTraining training;
    training.steps.resize(static_cast<std::size_t>(steps));
    return {{{.configuration = run}}, training, kSamples};
  }
  // "64/4 32/2": the batches and cores of the first rows.
  static std::string rows_of(const RunSteps& steps, std::int64_t count) {
    std::string text;
    for (std::int64_t row = 0; row < count; ++row) {
      const TraceStep step = std::get<Trace>(steps).at(StepIndex{row}).value();
      text += fmt::format("{}{}/{}", row == 0 ? "" : " ", step.batch_size, step.cores.value_or(0));
    }
    return text;
  }
  static std::vector<std::string> words_of(const RunEvents& events) {
    std::vector<std::string> words;
    for (const RunEvent& event : events.events()) {
      words.push_back(fmt::format("{}: {}", event.steps, event.words()));
    }
    return words;
  }

  const test::TempFolder temp_;
};

constexpr const char* kRows =
    "step,batchsize,cores\n0,64,4\n1,64,4\n2,32,2\n3,96,2\n4,96,6\n5,64,3\n";

TEST_F(RunEventsTest, AreTheChangesOfRows) {
  const RunEvents found = events(kRows, 6);
  EXPECT_THAT(words_of(found), ElementsAre("2: cores 4 to 2, batch 64 to 32", "3: batch 32 to 96",
                                           "4: cores 2 to 6", "5: cores 6 to 3, batch 96 to 64"));
  EXPECT_EQ(found.events()[0].kind, RunEvent::Kind::taken);
  EXPECT_EQ(found.events()[1].kind, RunEvent::Kind::batch);
  EXPECT_EQ(found.events()[2].kind, RunEvent::Kind::given);
  // Rows that the run has not reached are none.
  EXPECT_THAT(events(kRows, 3).events(), SizeIs(1));
}

TEST_F(RunEventsTest, LeaveEachNumberAsItWasUntilItsNextEvent) {
  const RunEvents found = events(kRows, 6);
  EXPECT_EQ(rows_of(found.without({}, false), 7), "64/4 64/4 32/2 96/2 96/6 64/3 64/3");
  EXPECT_EQ(rows_of(found.without({0}, false), 7), "64/4 64/4 64/4 96/4 96/6 64/3 64/3");
  EXPECT_EQ(rows_of(found.without({1}, false), 7), "64/4 64/4 32/2 32/2 32/6 64/3 64/3");
  EXPECT_EQ(rows_of(found.without({3}, false), 7), "64/4 64/4 32/2 96/2 96/6 96/6 96/6");
  EXPECT_EQ(rows_of(found.without({0, 1, 2, 3}, false), 7), "64/4 64/4 64/4 64/4 64/4 64/4 64/4");
}

TEST_F(RunEventsTest, AreFewerBatchesWhereATraceHasNoCores) {
  const RunEvents found = events("step,batchsize\n0,64\n1,32\n2,48\n3,96\n", 4);
  EXPECT_EQ(found.events()[0].kind, RunEvent::Kind::taken);
  EXPECT_EQ(found.events()[1].kind, RunEvent::Kind::given);
  EXPECT_EQ(rows_of(found.without({0}, false), 4), "64/0 64/0 48/0 96/0");
}

TEST_F(RunEventsTest, KeepWhatIsNotTaken) {
  const RunEvents found = events("step,batchsize\n0,64\n1,32\n2,48\n3,96\n4,32\n", 5);
  EXPECT_EQ(rows_of(found.without({0, 3}, true), 5), "64/0 64/0 64/0 96/0 96/0");
}

// A number that is kept follows the trace again from where the trace has it.
TEST_F(RunEventsTest, KeepANumberUntilTheTraceHasIt) {
  const RunEvents found = events("step,batchsize\n0,64\n1,32\n2,64\n3,48\n", 4);
  EXPECT_EQ(rows_of(found.without({0}, true), 4), "64/0 64/0 64/0 48/0");
}

// The rows before a fork are those of the run that it comes from.
TEST_F(RunEventsTest, OfAForkBeginWithThoseOfItsOrigin) {
  const auto segment = [&](const std::string& name, const std::string& rows, std::int64_t begin) {
    write_file(temp_.path() / name, "step,batchsize\n" + rows);
    return RunSegment{
        .configuration = {.trace = (temp_.path() / name).string(), .on_trace_end = TraceEnd::hold},
        .begin = begin};
  };
  const std::vector<RunSegment> segments{
      segment("run.csv", "0,64\n1,32\n2,32\n3,96\n4,16\n", 0),
      segment("fork.csv", "0,8\n1,8\n2,16\n3,128\n4,128\n5,256\n", 3)};
  RecordedTraining training;
  training.steps.resize(6);
  const RunEvents found(segments, training, kSamples);
  EXPECT_THAT(words_of(found),
              ElementsAre("1: batch 64 to 32", "3: batch 32 to 128", "5: batch 128 to 256"));
  EXPECT_EQ(rows_of(found.without({0}, false), 7), "64/0 64/0 64/0 128/0 128/0 256/0 256/0");
  EXPECT_EQ(rows_of(found.without({1}, false), 7), "64/0 32/0 32/0 32/0 32/0 256/0 256/0");
  // Of the steps before the fork nothing is known without that run.
  const RunEvents rest({segments.back()}, training, kSamples);
  EXPECT_THAT(words_of(rest), ElementsAre("5: batch 128 to 256"));
}

TEST_F(RunEventsTest, AreLeftOutOnceOfATraceThatRepeatsItself) {
  const RunEvents found = events("step,batchsize\n0,64\n1,32\n", 6, TraceEnd::cycle);
  EXPECT_EQ(found.events().size(), 5);
  EXPECT_EQ(rows_of(found.without({2}, false), 8), "64/0 32/0 64/0 64/0 64/0 32/0 64/0 32/0");
}

TEST_F(RunEventsTest, HoldTheLastRowOfATraceThatWouldBeTooShort) {
  const RunEvents found = events("step,batchsize\n0,32\n1,64\n", 2, TraceEnd::error);
  EXPECT_EQ(rows_of(found.without({0}, false), 4), "32/0 32/0 32/0 32/0");
  const RunEvents stopped = events("step,batchsize\n0,32\n1,64\n", 2, TraceEnd::stop);
  EXPECT_EQ(std::get<Trace>(stopped.without({0}, false)).end(), TraceEnd::stop);
}

}  // namespace
}  // namespace rubato
