#include "runs/recorded/watched_runs.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/base/error.hpp>

#include "recorded/lines.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using testing::ThrowsMessage;

class WatchedRunsTest : public testing::Test {
 protected:
  void add_run(const fs::path& run) const {
    folder_.write(run / "config.toml", "epochs = 1\n");
    folder_.write(run / "metrics.jsonl", test::step_line(0, 0) + test::epoch_line(0, 1, 0.5));
  }
  void end_run(const fs::path& run) const {
    folder_.write(run / "summary.json", R"({"wall_seconds": 1})");
  }
  [[nodiscard]] fs::path path(const fs::path& name) const { return folder_.path() / name; }
  static std::vector<std::string> names(WatchedRuns& runs) {
    runs.update();
    std::vector<std::string> names;
    for (const WatchedRuns::Watched& watched : runs.runs()) names.push_back(watched.name);
    return names;
  }

  test::TempFolder folder_;
};

TEST_F(WatchedRunsTest, MayBeOne) {
  add_run("run");
  WatchedRuns runs({path("run")});
  EXPECT_EQ(names(runs), std::vector{path("run").string()});
  EXPECT_TRUE(runs.is_single());
  EXPECT_FALSE(runs.has_ended());
  end_run("run");
  runs.update();
  EXPECT_TRUE(runs.has_ended());
}

TEST_F(WatchedRunsTest, MayComeWhileTheyAreWatched) {
  add_run("runs/b");
  WatchedRuns runs({path("runs")});
  EXPECT_THAT(names(runs), ElementsAre("b"));
  EXPECT_FALSE(runs.is_single()) << "another may come";
  add_run("runs/a");
  EXPECT_THAT(names(runs), ElementsAre("b", "a"));
}

// A run has its configuration before its first step, and one that Python has kept may have no
// configuration.
TEST_F(WatchedRunsTest, HaveAConfigurationOrMetrics) {
  folder_.write("runs/a/config.toml", "epochs = 1\n");
  folder_.write("runs/b/metrics.jsonl", test::step_line(0, 0));
  folder_.write("runs/c/notes.txt", "");
  WatchedRuns runs({path("runs")});
  EXPECT_THAT(names(runs), ElementsAre("a", "b"));
}

TEST_F(WatchedRunsTest, OfAnExperimentHaveItsNamesAndEndWithItsAnswer) {
  folder_.write("answer/design.toml", "");
  WatchedRuns runs({path("answer")});
  EXPECT_THAT(names(runs), ElementsAre()) << "it has only begun";
  add_run("answer/runs/linear-1");
  add_run("answer/runs/root-1");
  add_run("answer/tune/root-lr0.1");
  EXPECT_THAT(names(runs), ElementsAre("tune/root-lr0.1", "linear-1", "root-1"));
  end_run("answer/runs/linear-1");
  end_run("answer/tune/root-lr0.1");
  folder_.write("answer/runs/root-1.failed", "not enough memory\nand more\n");
  runs.update();
  EXPECT_EQ(runs.runs()[2].failure, "not enough memory");
  EXPECT_FALSE(runs.has_ended());
  folder_.write("answer/answer.json", "{}");
  EXPECT_TRUE(runs.has_ended());
}

// A run is one run, wherever workers have it, and is followed from one to the next.
TEST_F(WatchedRunsTest, AreThoseOfAllWorkers) {
  folder_.write("answer/design.toml", "");
  add_run("answer/workers/near.0.1/runs/a");
  add_run("answer/workers/far.0.2/runs/b");
  add_run("answer/workers/far.0.2/tune/lr");
  WatchedRuns runs({path("answer")});
  EXPECT_THAT(names(runs), ElementsAre("tune/lr", "a", "b"));
  EXPECT_EQ(runs.expected(), 3U);
  // The newest attempt counts.
  fs::last_write_time(path("answer/workers/near.0.1/runs/a/metrics.jsonl"),
                      fs::file_time_type::clock::now() - std::chrono::minutes(1));
  add_run("answer/workers/far.0.2/runs/a");
  EXPECT_THAT(names(runs), ElementsAre("tune/lr", "a", "b"));
  EXPECT_EQ(runs.runs()[1].run.folder(), path("answer/workers/far.0.2/runs/a"));
  fs::create_directories(path("answer/runs"));
  end_run("answer/workers/far.0.2/runs/a");
  fs::rename(path("answer/workers/far.0.2/runs/a"), path("answer/runs/a"));
  EXPECT_THAT(names(runs), ElementsAre("tune/lr", "a", "b"));
  EXPECT_EQ(runs.runs()[1].run.folder(), path("answer/runs/a")) << "and the old attempt does not";
  EXPECT_TRUE(runs.runs()[1].run.has_ended());
}

// Three rules and the baseline with three seeds: "2 of 12", not "2 of 3", as most of an
// experiment's runs have no folder before they begin.
TEST_F(WatchedRunsTest, AreAsManyAsTheDesignSays) {
  folder_.write("answer/design.toml",
                "model = \"softmax\"\n[axes]\nrule = [\"linear\", \"root\", \"adascale\"]\n"
                "seed = \"1..3\"\n");
  add_run("answer/runs/elastic_linear_seed-1");
  const WatchedRuns runs({path("answer")});
  EXPECT_EQ(runs.expected(), 12U);

  add_run("others/a");
  const WatchedRuns more({path("answer"), path("others")});
  EXPECT_EQ(more.expected(), 13U);
  // What needs a plug-in is not understood, and what is there counts.
  folder_.write("answer/design.toml", "rule = \"of-a-plugin\"\n");
  EXPECT_EQ(WatchedRuns({path("answer")}).expected(), 1U);
}

TEST_F(WatchedRunsTest, AreAsManyAsTheDesignTunesAndSays) {
  folder_.write(
      "answer/design.toml",
      "model = \"softmax\"\n[axes]\nrule = [\"linear\", \"root\"]\nseed = \"1..2\"\n"
      "[compare]\nbaseline = \"rule=linear\"\ntune = \"lr=0.01,0.1,1\"\ntune-seeds = 2\n");
  EXPECT_EQ(WatchedRuns({path("answer")}).expected(), 4U + 2U + 6U)
      << "runs, those of the baseline, and those that tune it";
}

// One of several that is none of rubato's does not hide the others.
TEST_F(WatchedRunsTest, SayWhichCannotBeRead) {
  add_run("runs/a");
  add_run("runs/b");
  folder_.write("runs/a/metrics.jsonl", "{}\n");
  WatchedRuns runs({path("runs")});
  runs.update();
  EXPECT_THAT(runs.runs()[0].failure, HasSubstr("metrics.jsonl:1: is not a line of metrics"));
  EXPECT_EQ(runs.runs()[1].failure, "");
  WatchedRuns alone({path("runs/a")});
  EXPECT_THROW(alone.update(), Error);
}

TEST_F(WatchedRunsTest, HaveToBeThere) {
  EXPECT_THAT([&] { WatchedRuns({path("nowhere")}); },
              ThrowsMessage<Error>(HasSubstr("nowhere: no such folder; accepted: ")));
  add_run("runs-of-old/a");
  fs::create_directory(path("runs"));
  EXPECT_THAT(
      [&] {
        WatchedRuns({path("runs-of-old"), path("runs")});
      },
      ThrowsMessage<Error>(HasSubstr("runs: contains no runs; accepted: ")));
}

}  // namespace
}  // namespace rubato
