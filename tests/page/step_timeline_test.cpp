#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "runs/page/thinned_run.hpp"
#include "runs/report/timeline.hpp"
#include "support/temp_folder.hpp"

namespace rubato::page {
namespace {

using std::chrono::milliseconds;

constexpr Span::Moment kBegin{std::chrono::hours(5)};

// A step of two cores and threads: from `begin` on, forward of so many milliseconds on each, then
// a merge of one, where core 0 takes the sum of core 1, and an update.
void add_step(RecordedTimeline& timeline, std::int64_t index, milliseconds begin,
              milliseconds forward) {
  const Span::Moment at = kBegin + begin;
  timeline.spans.resize(2);
  for (int thread = 0; thread < 2; ++thread) {
    Span span{.activity = Activity::forward,
              .step = StepIndex{index},
              .minibatch = MinibatchIndex{2 * index + thread},
              .core = CoreRank{thread},
              .thread = thread,
              .begin = at,
              .end = at + forward};
    timeline.spans[static_cast<std::size_t>(thread)].push_back(span);
    span.activity = Activity::merge;
    span.begin = span.end;
    span.end += milliseconds(1 + thread);
    timeline.spans[static_cast<std::size_t>(thread)].push_back(span);
  }
  timeline.spans[0].push_back({.activity = Activity::update,
                               .step = StepIndex{index},
                               .begin = at + forward + milliseconds(2),
                               .end = at + forward + milliseconds(4)});
  timeline.meetings.push_back({.step = StepIndex{index},
                               .meeting = {.first = CoreRank{1},
                                           .left = at + forward,
                                           .second = CoreRank{0},
                                           .taken = at + forward + milliseconds(1)}});
}

class StepFigures : public testing::Test {
 protected:
  [[nodiscard]] std::vector<Json> figures_of(const std::string& text) const {
    return step_figures(folder_.write("timeline.json", text));
  }

  test::TempFolder folder_;
};

TEST_F(StepFigures, AreOfTheStepThatTookTheMedianTime) {
  RecordedTimeline timeline;
  // It is neither the middle one in the file, nor the longest or the shortest.
  add_step(timeline, 7, milliseconds(0), milliseconds(40));
  add_step(timeline, 8, milliseconds(50), milliseconds(10));
  add_step(timeline, 9, milliseconds(70), milliseconds(5));
  add_step(timeline, 10, milliseconds(90), milliseconds(4));
  add_step(timeline, 11, milliseconds(110), milliseconds(30));
  const std::vector<Json> figures = figures_of(timeline_json(timeline));
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[0]["title"], "A step: what the threads did");
  EXPECT_EQ(figures[1]["title"], "A step: what the cores did");
  EXPECT_EQ(figures[0]["help"], "step 9, which took the median time of those in the timeline");
  EXPECT_EQ(figures[0]["duration"], 14);
  EXPECT_EQ(figures[0]["lanes"][0].dump(),
            R"({"name":"thread 0","spans":[[1,0,10,16,16],[4,10,11,16,16],[6,12,14]]})");
  EXPECT_EQ(figures[1]["lanes"][1].dump(),
            R"({"name":"core 1","spans":[[1,0,10,17,17],[4,10,12,17,17]]})");
  EXPECT_EQ(figures[1]["meetings"].dump(), "[[1,10,0,11]]");
  EXPECT_EQ(figures[0]["left_out"], false);
}

TEST_F(StepFigures, SayWhichHostTheyAreOf) {
  RecordedTimeline timeline{.host = 0, .hosts = 3};
  add_step(timeline, 0, milliseconds(0), milliseconds(10));
  const std::vector<Json> figures = figures_of(timeline_json(timeline));
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[0]["title"], "A step: what the threads of host 0 did");
  EXPECT_EQ(
      figures[0]["help"],
      "step 1, which took the median time of those in the timeline; it covers this host only");
}

TEST_F(StepFigures, AreNoneOfWhatIsNoTimeline) {
  EXPECT_TRUE(step_figures(folder_.path() / "timeline.json").empty());
  EXPECT_TRUE(figures_of("").empty());
  EXPECT_TRUE(figures_of("{\"traceEvents\":[\n{}\n]}").empty());
  EXPECT_TRUE(figures_of(R"({"ph":"X","pid":1,"ts":0,"dur":5,"name":"step <script>"})").empty());
  EXPECT_TRUE(figures_of(R"({"ph":"X","pid":1,"ts":0,"dur":5,"name":"step 3"})").empty());
}

// Half a file, as a disk that was full leaves it, and events that are not as they should be.
TEST_F(StepFigures, PassOverWhatIsDamaged) {
  RecordedTimeline timeline;
  add_step(timeline, 0, milliseconds(0), milliseconds(10));
  std::string text = timeline_json(timeline);
  for (std::size_t cut = text.size(); cut > 0; cut -= std::min<std::size_t>(cut, 37)) {
    static_cast<void>(figures_of(text.substr(0, cut)));
  }
  text += R"({"ph":"X","pid":2,"tid":1,"ts":1,"dur":"x","name":"forward","args":7})"
          "\n"
          R"({"ph":"f","pid":3,"tid":1,"ts":1,"id":99})"
          "\n"
          R"({"ph":5})";
  const std::vector<Json> figures = figures_of(text);
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[0]["lanes"][0]["spans"].size(), 3U);
}

TEST_F(StepFigures, HaveAsManyLanesAsThereIsRoomFor) {
  RecordedTimeline timeline;
  add_step(timeline, 0, milliseconds(0), milliseconds(10));
  for (std::int64_t core = 2; core < 200; ++core) {
    Span span = timeline.spans[0].front();
    span.core = CoreRank{core};
    timeline.spans[0].push_back(span);
  }
  const std::vector<Json> figures = figures_of(timeline_json(timeline));
  EXPECT_EQ(figures[1]["lanes"].size(), 48U);
  EXPECT_EQ(figures[1]["left_out"], true);
}

}  // namespace
}  // namespace rubato::page
