#include "runs/report/timeline.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <rubato/testing.hpp>

#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using nlohmann::json;

constexpr std::int64_t kTraining = 1;
constexpr std::int64_t kThreads = 2;
constexpr std::int64_t kCores = 3;

// Two epochs of 6 steps with 8 minibatches on 5 cores and 3 threads.
struct TimedTraining {
  TimedTraining(const std::filesystem::path& folder, std::int64_t first, std::int64_t last,
                std::size_t most_spans = Timeline::kMostSpans)
      : timeline(std::make_shared<Timeline>(folder, StepIndex{first}, StepIndex{last}, most_spans)),
        trainer(test::tiny_objective(), test::trace_of({8}), options()) {
    trainer.add_observer(timeline);
  }
  [[nodiscard]] TrainOptions options() const {
    TrainOptions options{
        .epochs = 2,
        .minibatch_size = 1,
        .on_span = [of = timeline](const Span& span) { of->take(span); },
        .on_meeting = [of = timeline](StepIndex step, const Meeting& met) { of->take(step, met); },
        .cores = 5,
        .reduce = "tree",
        .threads = 3};
    options.faults.planned = {{.core = CoreRank{1}, .step = StepIndex{3}}};
    return options;
  }

  std::shared_ptr<Timeline> timeline;
  Trainer trainer;
};

json events_of(const std::filesystem::path& file) {
  return json::parse(test::read_file(file)).at("traceEvents");
}

// The complete events of a process, by lane, as they began.
std::map<std::int64_t, std::vector<json>> lanes_of(const json& events, std::int64_t process) {
  std::map<std::int64_t, std::vector<json>> lanes;
  for (const json& event : events) {
    if (event.at("ph") == "X" && event.at("pid") == process)
      lanes[event.at("tid")].push_back(event);
  }
  for (auto& [id, lane] : lanes) {
    std::ranges::stable_sort(lane, {},
                             [](const json& event) { return event.at("ts").get<double>(); });
  }
  return lanes;
}

double end_of(const json& event) {
  return event.at("ts").get<double>() + event.at("dur").get<double>();
}

// The names of those of the training: its steps, and what else it did.
std::vector<std::string> names_of(const json& events, std::int64_t lane) {
  std::vector<std::string> names;
  const auto lanes = lanes_of(events, kTraining);
  for (const json& event : lanes.at(lane)) names.push_back(event.at("name"));
  return names;
}
std::vector<std::string> steps_of(const json& events) {
  return names_of(events, 1);
}
std::vector<std::string> instants_of(const json& events) {
  std::vector<std::string> names;
  for (const json& event : events) {
    if (event.at("ph") == "i") names.push_back(event.at("name"));
  }
  return names;
}

class TimelineFile : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path file() const { return folder_.path() / kTimelineFile; }
  [[nodiscard]] json timed(std::int64_t first, std::int64_t last) const {
    TimedTraining training(folder_.path(), first, last);
    training.trainer.fit();
    training.timeline->write();
    return events_of(file());
  }

  test::TempFolder folder_;
};

TEST_F(TimelineFile, HasTheStepsThatAreWanted) {
  EXPECT_THAT(steps_of(timed(2, 4)), ElementsAre("step 3", "step 4", "step 5"));
}

TEST_F(TimelineFile, TellsOfEachMinibatchOnItsThreadAndItsCore) {
  const json events = timed(0, 1'000);
  EXPECT_EQ(steps_of(events).size(), 12U);
  const auto threads = lanes_of(events, kThreads);
  const auto cores = lanes_of(events, kCores);
  EXPECT_EQ(threads.size(), 3U);
  EXPECT_EQ(cores.size(), 5U);
  std::map<std::pair<std::int64_t, std::int64_t>, int> forwards;
  for (const auto& [lane_of_core, lane] : cores) {
    const std::int64_t core = lane_of_core - 1;
    for (const json& event : lane) {
      if (event.at("name") != "forward") continue;
      const json& args = event.at("args");
      ++forwards[{args.at("step").get<std::int64_t>() - 1, args.at("minibatch")}];
      // The same on the lane of its thread.
      const auto& of_thread = threads.at(args.at("thread").get<std::int64_t>() + 1);
      EXPECT_EQ(std::ranges::count_if(of_thread,
                                      [&](const json& other) {
                                        return other.at("ts") == event.at("ts") &&
                                               other.at("name") == "forward" &&
                                               other.at("args").at("core") == core;
                                      }),
                1);
    }
  }
  for (std::int64_t step = 0; step < 12; ++step) {
    for (std::int64_t minibatch = 8 * (step % 6); minibatch < 8 * (step % 6 + 1); ++minibatch) {
      // Those of step 3 may have been computed before core 1 died, too.
      EXPECT_GE((forwards[{step, minibatch}]), 1) << step << ": " << minibatch;
      if (step != 3) {
        EXPECT_EQ((forwards[{step, minibatch}]), 1) << step << ": " << minibatch;
      }
    }
  }
}

// Each thread does one thing at a time, and waits between them.
TEST_F(TimelineFile, SaysWhenAThreadWaits) {
  const json events = timed(0, 5);
  const auto steps = lanes_of(events, kTraining).at(1);
  for (const auto& [thread, lane] : lanes_of(events, kThreads)) {
    for (std::size_t i = 1; i < lane.size(); ++i) {
      const double gap = lane[i].at("ts").get<double>() - end_of(lane[i - 1]);
      EXPECT_GE(gap, -0.002) << lane[i];
      const bool same = lane[i].at("args").at("step") == lane[i - 1].at("args").at("step");
      const bool waits = lane[i].at("name") == "wait" || lane[i - 1].at("name") == "wait";
      if (same && waits) {
        EXPECT_LE(gap, 0.002) << lane[i];
      }
      EXPECT_FALSE(lane[i].at("name") == "wait" && lane[i - 1].at("name") == "wait" && same);
    }
  }
}

// From within what a core did last to within what another one adds.
TEST_F(TimelineFile, LeadsFromCoreToCoreWhereSumsMeet) {
  const json events = timed(0, 2);
  const auto cores = lanes_of(events, kCores);
  const auto within_a_merge = [&](const json& end) {
    const double at = end.at("ts");
    return std::ranges::any_of(cores.at(end.at("tid")), [&](const json& event) {
      return event.at("name") == "merge" && event.at("ts").get<double>() <= at + 0.002 &&
             at <= end_of(event) + 0.002;
    });
  };
  std::map<std::int64_t, json> starts;
  int ends = 0;
  for (const json& event : events) {
    if (event.at("ph") == "s") starts[event.at("id")] = event;
  }
  for (const json& event : events) {
    if (event.at("ph") != "f") continue;
    ++ends;
    const json& start = starts.at(event.at("id"));
    EXPECT_NE(start.at("tid"), event.at("tid"));
    EXPECT_LE(start.at("ts"), event.at("ts"));
    EXPECT_TRUE(within_a_merge(start)) << start;
    EXPECT_TRUE(within_a_merge(event)) << event;
  }
  // Of 5 cores in each of 3 steps.
  EXPECT_EQ(ends, 3 * 4);
  EXPECT_EQ(starts.size(), 12U);
}

TEST_F(TimelineFile, HasTestsFaultsAndWhatTheRunNotes) {
  TimedTraining training(folder_.path(), 0, 1'000);
  training.timeline->note("too early", {}, {});
  training.trainer.fit();
  const auto now = std::chrono::steady_clock::now();
  training.timeline->note("checkpoint", now, now + std::chrono::milliseconds(3));
  training.timeline->write();
  const json events = events_of(file());
  EXPECT_THAT(names_of(events, 2), ElementsAre("test", "test", "checkpoint"));
  EXPECT_THAT(instants_of(events), ElementsAre("core 1 died"));
}

TEST_F(TimelineFile, LeavesOutWholeStepsWhereThereIsNoRoom) {
  TimedTraining training(folder_.path(), 0, 1'000, 3 * 100);
  training.trainer.fit();
  training.timeline->write();
  const json timeline = json::parse(test::read_file(file()));
  EXPECT_EQ(timeline.at("otherData").at("whole"), false);
  const std::vector<std::string> steps = steps_of(timeline.at("traceEvents"));
  ASSERT_FALSE(steps.empty());
  EXPECT_LT(steps.size(), 12U);
  std::map<std::int64_t, int> forwards;
  for (const auto& [core, lane] : lanes_of(timeline.at("traceEvents"), kCores)) {
    for (const json& event : lane) {
      if (event.at("name") == "forward") ++forwards[event.at("args").at("step")];
    }
  }
  EXPECT_EQ(forwards.size(), steps.size());
  for (const auto& [step, count] : forwards) EXPECT_GE(count, 8) << step;
}

constexpr Span::Moment kFirstSpan{std::chrono::hours(1)};

Span span_of(std::int64_t step, int thread, int begin, int end,
             Activity activity = Activity::forward) {
  Span span{.activity = activity, .step = StepIndex{step}, .thread = thread};
  if (activity == Activity::forward) span.core = CoreRank{thread};
  span.begin = kFirstSpan + std::chrono::milliseconds(begin);
  span.end = kFirstSpan + std::chrono::milliseconds(end);
  return span;
}

// Each of three threads has room for four spans: the first that has none left decides for all, and
// what happened later belongs to steps that are not there.
TEST_F(TimelineFile, EndsBeforeTheFirstStepThatHasNoRoomAndItsFaults) {
  const TimedTraining training(folder_.path(), 0, 1'000, 3 * 4);
  Timeline& timeline = *training.timeline;
  for (int step = 0; step < 4; ++step) {
    const int begin = 10 * step;
    timeline.take(span_of(step, 0, begin, begin + 1));
    timeline.take(span_of(step, 0, begin + 1, begin + 2));
    timeline.take(span_of(step, 1, begin, begin + 3));
    const auto note = [&](const char* text, int at) {
      const Span::Moment moment = kFirstSpan + std::chrono::milliseconds(at);
      timeline.note(text, moment, moment);
    };
    if (step == 1) note("core 1 died", begin + 1);
    if (step == 3) note("core 2 died", begin + 1);
  }
  timeline.write();
  const json file_json = json::parse(test::read_file(file()));
  const json& events = file_json.at("traceEvents");
  EXPECT_EQ(file_json.at("otherData").at("whole"), false);
  EXPECT_EQ(file_json.at("otherData").at("last_step"), 2);
  EXPECT_THAT(steps_of(events), ElementsAre("step 1", "step 2"));
  EXPECT_THAT(instants_of(events), ElementsAre("core 1 died"));
}

// The calling thread alone updates; for the others the step is over when the cores are done.
TEST(TimelineJson, LetsNobodyWaitDuringTheUpdate) {
  const RecordedTimeline timeline{
      .spans = {{span_of(0, 0, 0, 10), span_of(0, 0, 12, 20, Activity::update)},
                {span_of(0, 1, 0, 8)}}};
  const json events = json::parse(timeline_json(timeline)).at("traceEvents");
  std::vector<std::string> waits;
  for (const auto& [lane, spans] : lanes_of(events, kThreads)) {
    for (const json& event : spans) {
      if (event.at("name") != "wait") continue;
      waits.push_back(fmt::format("thread {}: {} to {}", lane - 1,
                                  event.at("ts").get<double>() / 1000, end_of(event) / 1000));
    }
  }
  EXPECT_THAT(waits, ElementsAre("thread 0: 10 to 12", "thread 1: 8 to 10"));
}

TEST(TimelineJson, ShowsAPassOnEveryCoreThatItSpans) {
  RecordedTimeline timeline{.spans = {{span_of(0, 0, 0, 10)}, {span_of(0, 1, 0, 8)}}};
  timeline.spans[1].front().core = CoreRank{2};
  timeline.spans[1].front().cores = 3;
  const auto cores = lanes_of(json::parse(timeline_json(timeline)).at("traceEvents"), kCores);
  std::vector<std::string> passes;
  for (const auto& [lane, spans] : cores) {
    for (const json& event : spans) {
      passes.push_back(fmt::format("core {}: {}", lane - 1, end_of(event) / 1000));
    }
  }
  EXPECT_THAT(passes, ElementsAre("core 0: 10", "core 2: 8", "core 3: 8", "core 4: 8"));
}

TEST(TimelineJson, SaysWhoseThreadsTheseAre) {
  RecordedTimeline timeline{.spans = {{span_of(33, 0, 0, 10)}}};
  EXPECT_THAT(timeline_json(timeline), HasSubstr(R"("args":{"name":"threads"})"));
  timeline.host = 1;
  timeline.hosts = 3;
  const json file = json::parse(timeline_json(timeline));
  EXPECT_EQ(file.at("otherData").at("host"), 1);
  EXPECT_EQ(file.at("otherData").at("hosts"), 3);
  std::vector<std::string> processes;
  for (const json& event : file.at("traceEvents")) {
    if (event.at("name") == "process_name") processes.push_back(event.at("args").at("name"));
    if (!event.contains("args") || !event["args"].contains("step")) continue;
    EXPECT_EQ(event["args"]["step"], 34) << "as the page and --timeline count";
  }
  EXPECT_THAT(processes, ElementsAre("training of host 1", "threads of host 1", "cores of host 1"));
}

// As soon as the steps are over, and one file for each process.
TEST_F(TimelineFile, IsWrittenOnceAndBesideAnEarlierOne) {
  folder_.write(kTimelineFile, "{}");
  TimedTraining training(folder_.path(), 1, 2);
  const auto second = folder_.path() / "timeline-2.json";
  std::int64_t there_after = 0;
  training.trainer.add_observer<test::Recorder>([&](Training&, const StepRecord& step) {
    if (there_after == 0 && std::filesystem::exists(second)) there_after = step.plan.index.value();
  });
  training.trainer.fit();
  EXPECT_EQ(there_after, 3);
  training.timeline->write();
  EXPECT_EQ(test::read_file(file()), "{}");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "timeline-3.json"));
}

TEST_F(TimelineFile, IsNotWrittenOfNothing) {
  TimedTraining training(folder_.path(), 500, 600);
  training.trainer.fit();
  training.timeline->write();
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(TimelineFile, ChangesNoBit) {
  TimedTraining timed(folder_.path(), 0, 1'000);
  TrainOptions options = timed.options();
  options.on_span = {};
  options.on_meeting = {};
  Trainer plain(test::tiny_objective(), test::trace_of({8}), options);
  timed.trainer.fit();
  plain.fit();
  EXPECT_EQ(test::difference_of(timed.trainer, plain), std::nullopt);
}

}  // namespace
}  // namespace rubato
