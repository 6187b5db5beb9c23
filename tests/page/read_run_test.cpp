// Run folders as pages read them: whole, killed, damaged.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/base/error.hpp>

#include "runs/page/html.hpp"
#include "runs/page/page.hpp"
#include "runs/page/thinned_run.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato::page {
namespace {

using testing::Pair;

std::string step(int index, const std::string& more = "", int cores = 2) {
  return fmt::format(
      R"({{"kind":"step","step":{},"epoch":0,"batch":64,"cores":{},"loss":0.5{},"seconds":{{"wall":0.25,"update":0.05}}}})"
      "\n",
      index, cores, more);
}

class ReadRun : public testing::Test {
 protected:
  ThinnedRun read(const std::string& metrics) {
    folder_.write("config.toml", "model = \"softmax\"\nrule = \"linear\"\n");
    folder_.write("metrics.jsonl", metrics);
    return read_run(folder_.path().string(), 100);
  }
  std::vector<std::string> marks_of(const ThinnedRun& run) {
    std::vector<std::string> marks;
    for (const Mark& mark : run.marks) marks.push_back(fmt::format("{} {}", mark.step, mark.kind));
    return marks;
  }
  test::TempFolder folder_;
};

TEST_F(ReadRun, AddsUpWhatEachStepTook) {
  const ThinnedRun run =
      read(step(0) + step(1) +
           R"({"kind":"epoch","epoch":0,"test_accuracy":0.75,"seconds":{"train":1,"test":0.5}})"
           "\n");
  EXPECT_EQ(run.last[Axis::steps], 2);
  EXPECT_EQ(run.last[Axis::samples], 128);
  EXPECT_EQ(run.last[Axis::seconds], 0.5);
  EXPECT_FALSE(run.has_clock);
  EXPECT_EQ(run.times.update, 0.1);
  EXPECT_EQ(run.times.test, 0.5);
  EXPECT_EQ(run.options.at("rule"), "linear");
  EXPECT_TRUE(run.steps.has("loss"));
  EXPECT_TRUE(run.epochs.has("test_accuracy"));
  EXPECT_FALSE(run.steps.has("test_accuracy"));
  EXPECT_THAT(run.warnings, SizeIs(0));
}

TEST_F(ReadRun, KeepsTheExtremesOfManyLines) {
  std::string metrics;
  for (int i = 0; i < 20'000; ++i) {
    const double gain = i == 777 ? 50 : i == 15'000 ? -3 : 1;
    // Every second line has its columns in another order than a run, and is read differently.
    metrics += i % 2 == 1
                   ? step(i, fmt::format(R"(,"gain":{})", gain))
                   : fmt::format(R"({{"kind":"step","step":{},"batch":64,"cores":2,"gain":{}}})"
                                 "\n",
                                 i, gain);
  }
  const std::vector<ThinnedRun> runs{read(metrics)};
  const ThinnedRun& run = runs.front();
  EXPECT_EQ(run.last[Axis::steps], 20'000);
  EXPECT_LE(run.steps.buckets().size(), 100U);
  double least = 0;
  double most = 0;
  std::int64_t count = 0;
  for (const Buckets::Bucket& bucket : run.steps.buckets()) {
    const Buckets::Range range = run.steps.range_of(bucket, "gain");
    least = std::min(least, range.low);
    most = std::max(most, range.high);
    count += range.count;
  }
  EXPECT_EQ(least, -3);
  EXPECT_EQ(most, 50);
  EXPECT_EQ(count, 20'000);
  EXPECT_LT(to_html(document_of_runs(runs), "").size(), 2'000'000U);
}

TEST_F(ReadRun, GoesAsFarAsAKilledRunWrote) {
  const ThinnedRun run = read(step(0) + step(1) + step(2).substr(0, 30));
  EXPECT_EQ(run.last[Axis::steps], 2);
  EXPECT_TRUE(run.summary.is_null());
  EXPECT_THAT(run.warnings, ElementsAre(HasSubstr("the last line, 3, is half written")));
}

TEST_F(ReadRun, StopsAtADamagedLine) {
  const ThinnedRun run = read(step(0) + "{\"kind\":\n" + step(2));
  EXPECT_EQ(run.last[Axis::steps], 1);
  EXPECT_THAT(run.warnings,
              ElementsAre(HasSubstr(
                  "metrics.jsonl:2: is not a line of metrics; accepted: what a run has written "
                  "(docs/records.md); this line and all after it are left out")));
}

TEST_F(ReadRun, TakesNothingForGranted) {
  for (const char* line :
       {"[]", "3", "{}", R"({"kind":7})", R"({"kind":"step","step":"x"})",
        R"({"kind":"step","step":-1})", R"({"kind":"step","step":1e30})",
        R"({"kind":"step","substeps":["y"]})", R"({"kind":"step","decision":[1]})",
        R"({"kind":"own","metrics":{"a":"b"}})", R"({"kind":"fault","core":null,)"}) {
    const ThinnedRun run = read(step(0) + line + "\n" + step(1));
    EXPECT_THAT(run.warnings, ElementsAre(HasSubstr("metrics.jsonl:2: "))) << line;
    EXPECT_EQ(run.last[Axis::samples], 64) << line;
  }
  const ThinnedRun run = read(
      "{\"kind\":\"step\"}\n{\"kind\":\"step\",\"clock\":[],\"seconds\":null}\n"
      "{\"kind\":\"monitor\"}\n{\"kind\":\"fault\"}\n{\"kind\":\"unheard-of\"}\n");
  EXPECT_THAT(run.warnings, SizeIs(0));
  EXPECT_EQ(run.last[Axis::samples], 0);
  folder_.write("summary.json", "{\"steps\":");
  EXPECT_THAT(read("").warnings, ElementsAre(HasSubstr("summary.json cannot be read")));
}

TEST_F(ReadRun, SaysThatItsMetricsAreNotThoseThatTheRunWrote) {
  folder_.write("summary.json", R"({"steps":2,"metrics_sha256":"0"})");
  EXPECT_THAT(read(step(0) + step(1)).warnings,
              ElementsAre(HasSubstr("metrics.jsonl is not the file that the run wrote")));
  EXPECT_THAT(read(step(0)).warnings, ElementsAre(HasSubstr("; it has 1 of 2 steps.")));
  EXPECT_THAT(read(step(0) + step(1) + step(2)).warnings, IsEmpty()) << "it has continued since";
}

// Nothing that a configuration names is loaded.
TEST_F(ReadRun, SaysWhereTheStepsOfAForkOfAForkAre) {
  folder_.write("run/config.toml", "plugin = \"none.so\"\n");
  folder_.write("a/config.toml", "plugin = \"none.so\"\nfrom = \"../run@2\"\n");
  folder_.write("b/config.toml", "from = \"../a@3\"\n");
  for (const char* file :
       {"a/checkpoints/step-2", "b/checkpoints/step-3", "b/checkpoints/step-5"}) {
    folder_.write(fmt::format("{}.safetensors", file), "");
  }
  folder_.write("b/metrics.jsonl", step(0) + step(1) + step(2) + step(3) + step(4));
  const std::string folder = folder_.path().string();
  const auto past = [&] { return read_run(folder + "/b", 100).past; };
  EXPECT_THAT(past(),
              ElementsAre(Pair("steps 1 to 2", folder + "/run"),
                          Pair("step 3", folder + "/a, with checkpoints after 2"),
                          Pair("steps 4 to 5", folder + "/b, with checkpoints after 3, 5")));
  std::filesystem::rename(folder + "/run", folder + "/moved");
  EXPECT_THAT(past(),
              ElementsAre(Pair("steps 1 to 2", folder + "/run, which is gone"),
                          Pair("step 3", folder + "/a, with checkpoints after 2"),
                          Pair("steps 4 to 5", folder + "/b, with checkpoints after 3, 5")));
  EXPECT_THAT(read_run(folder + "/b", 100).warnings,
              ElementsAre(AllOf(HasSubstr("run, the origin of "), HasSubstr("/a, is gone"),
                                HasSubstr("; steps from 2 on can be forked"))));
  folder_.write("a/config.toml", "from = \"nowhere\"\n");
  EXPECT_THAT(read_run(folder + "/b", 100).warnings,
              ElementsAre(HasSubstr("Where its steps are cannot be read: ")));
}

TEST_F(ReadRun, MarksWhatHappened) {
  folder_.write("checkpoints/step-2.safetensors", "");
  folder_.write("hosts.log", "2026-11-24T03:36:09Z after 1 steps, 2 hosts\n");
  const ThinnedRun run = read(
      step(0) + R"({"kind":"fault","step":1,"core":1,"substep":0,"cores_left":1})" + "\n" +
      step(1) + step(2, "", 1) + step(3, R"(,"applied":false,"skipped":true)") +
      step(4, R"(,"clock":{"hours":1,"money":2,"restarts":1})") + step(5, R"(,"applied":false)"));
  EXPECT_THAT(marks_of(run), ElementsAre("1 hosts", "2 core died", "2 checkpoint", "3 fewer cores",
                                         "5 restart", "6 not finite"));
  EXPECT_EQ(run.marks.front().at[Axis::samples], 64);
  EXPECT_THAT(run.hosts, SizeIs(1));
  EXPECT_TRUE(run.has_clock);
}

// The cores that are left have no second mark: it is the fault that took the others away.
TEST_F(ReadRun, MarksAFaultAloneWhereItsOwnStepHasFewerCores) {
  const ThinnedRun run =
      read(step(0) + R"({"kind":"fault","step":1,"core":1,"substep":0,"cores_left":1})" + "\n" +
           step(1, "", 1) + step(2, "", 2));
  EXPECT_THAT(marks_of(run), ElementsAre("2 core died"));
}

// As a step whose attempts are lost again and again.
TEST_F(ReadRun, CountsEachRestartOfAStep) {
  const ThinnedRun run = read(step(0, R"(,"clock":{"hours":1,"restarts":1})") +
                              step(1, R"(,"clock":{"hours":1,"restarts":3})", 1) +
                              step(2, R"(,"clock":{"hours":2,"restarts":3})", 1));
  EXPECT_THAT(marks_of(run), ElementsAre("1 restart", "2 restart"));
  EXPECT_EQ(run.marks[0].text, "on 2 cores, before on 0");
  EXPECT_EQ(run.marks[1].text, "2 times, in the end on 1 cores, before on 2");
  EXPECT_EQ(run.mark_counts.at(1), 3);
}

TEST_F(ReadRun, AddsUpTheExchangeBetweenHosts) {
  const ThinnedRun run =
      read(R"({"kind":"step","step":0,"batch":64,"cores":2,"seconds":{"wall":2,"exchange":1.5}})"
           "\n" +
           step(1));
  EXPECT_EQ(run.times.exchange, 1.5);
  EXPECT_TRUE(run.steps.has("seconds.exchange"));
}

TEST_F(ReadRun, KeepsTheFirstMarksOfEachKind) {
  std::string metrics;
  for (int i = 0; i < 1000; ++i) metrics += step(i, "", i % 2 == 0 ? 2 : 1);
  const ThinnedRun run = read(metrics);
  EXPECT_THAT(run.marks, SizeIs(kMostMarks));
  EXPECT_EQ(run.mark_counts.at(2), 500);
}

TEST(ReadRunFolder, HasToBeOne) {
  const test::TempFolder folder;
  EXPECT_THROW(static_cast<void>(read_run(folder.path().string(), 100)), Error);
  EXPECT_THROW(static_cast<void>(read_run((folder.path() / "none").string(), 100)), Error);
  folder.write("config.toml", "");
  EXPECT_THROW(static_cast<void>(read_run(folder.path().string(), 100)), Error);
}

}  // namespace
}  // namespace rubato::page
