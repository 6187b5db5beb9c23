// A run as a value: what it leaves, and how it goes on. Without libtorch, and without a program.

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <rubato/base/state.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/workload.hpp>
#include <rubato/testing.hpp>

#include "base/core/file.hpp"
#include "base/state/sha256.hpp"
#include "run/runs.hpp"
#include "runs/run/resumption.hpp"
#include "support/error_of.hpp"
#include "support/file_calls.hpp"
#include "support/json_fields.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

using test::outcome_of;
using test::PauseAfter;

// 3 epochs of 8 steps.
RunConfiguration small() {
  return {.model = "quadratic:dim=5,samples=512",
          .trace = "64",
          .cores = 3,
          .epochs = 3,
          .threads = 2,
          .checkpoint_every = "5steps"};
}

// Stops the run for now after so many steps in all.
class StopForNowAfter final : public Observer {
 public:
  StopForNowAfter(rubato::Run& run, std::int64_t steps) : run_(run), steps_(steps) {}
  void between_steps(Training& training) override {
    if (training.result().steps == steps_) {
      run_.stop_for_now(training, fmt::format("after {}", steps_));
    }
  }

 private:
  rubato::Run& run_;
  std::int64_t steps_;
};

std::string weights_of(const RunConfiguration& configuration) {
  return outcome_of(configuration).summary.value().weights_sha256;
}

std::int64_t lines_of(const fs::path& file) {
  const std::string text = read_file(file);
  return std::count(text.begin(), text.end(), '\n');
}

class RunTest : public testing::Test {
 protected:
  const test::TempFolder temp_;
  const fs::path folder_ = temp_.path() / "run";
  RunConfiguration configuration_ = small();
};

TEST_F(RunTest, LeavesAFolderThatSaysAllOfIt) {
  rubato::Run run(configuration_, dense_workload(configuration_), RunLocation::create(folder_));
  const RunOutcome outcome = run.execute();
  ASSERT_EQ(outcome.end, RunEnd::completed);
  EXPECT_EQ(outcome.summary->result.steps, 24);

  const auto summary = nlohmann::json::parse(read_file(folder_ / "summary.json"));
  test::expect_fields(summary, R"({"engine": "eigen", "steps": 24, "final_test_accuracy": null})");
  EXPECT_EQ(summary.at("weights_sha256"), weights_of(configuration_));
  EXPECT_TRUE(summary.at("versions").contains("eigen"));
  EXPECT_FALSE(summary.at("kernels").contains("openblas_by_itself")) << "there is none";
  EXPECT_EQ(lines_of(folder_ / "metrics.jsonl"), 24 + 3);
  EXPECT_EQ(summary.at("metrics_sha256"), Sha256::hex_of(read_file(folder_ / "metrics.jsonl")));
  EXPECT_TRUE(fs::exists(folder_ / "checkpoints" / "step-24.safetensors"));

  // The weights, for every reader of safetensors.
  const State weights = read_state(folder_ / "weights.safetensors");
  const auto trained = run.trainer().parameters().front().values<float>();
  EXPECT_EQ(weights.values<float>("parameters"), std::vector(trained.begin(), trained.end()));
}

// The names of a timeline's events, each as often as it is there.
std::multiset<std::string> names_in(const fs::path& timeline) {
  std::multiset<std::string> names;
  const auto json = nlohmann::json::parse(read_file(timeline));
  for (const auto& event : json.at("traceEvents")) names.insert(event.at("name"));
  return names;
}

TEST_F(RunTest, WritesATimelineOfTheStepsThatAreAskedFor) {
  configuration_.timeline = "steps=4..6";
  rubato::Run run(configuration_, dense_workload(configuration_), RunLocation::create(folder_));
  EXPECT_EQ(run.execute().summary->weights_sha256, weights_of(small()));
  const auto names = names_in(folder_ / "timeline.json");
  EXPECT_EQ(names.count("step 3") + names.count("step 7"), 0U);
  for (const char* const step : {"step 4", "step 5", "step 6"}) EXPECT_EQ(names.count(step), 1U);
  // After step 6.
  EXPECT_EQ(names.count("checkpoint"), 1U);
}

// What ends a training is in its timeline, and what goes on with it has one of its own.
TEST_F(RunTest, WritesATimelineOfATrainingThatFails) {
  configuration_.timeline = "all";
  {
    rubato::Run run(configuration_, dense_workload(configuration_), RunLocation::create(folder_));
    run.trainer().add_observer<test::Recorder>([](Training&, const StepRecord& step) {
      if (step.plan.index.value() == 7) throw Error("no power");
    });
    EXPECT_EQ(error_of([&] { run.execute(); }), "no power");
  }
  EXPECT_EQ(names_in(folder_ / "timeline.json").count("step 8"), 1U);
  rubato::Run run(configuration_, dense_workload(configuration_),
                  RunLocation::resume(folder_, configuration_));
  EXPECT_EQ(run.execute().end, RunEnd::completed);
  const auto names = names_in(folder_ / "timeline-2.json");
  EXPECT_EQ(names.count("step 5"), 0U);
  EXPECT_EQ(names.count("step 6") + names.count("step 24"), 2U);
}

TEST_F(RunTest, WritesNothingWhereItIsNowhere) {
  rubato::Run run(configuration_, dense_workload(configuration_));
  EXPECT_EQ(run.execute().end, RunEnd::completed);
  EXPECT_EQ(error_of([&] { run.write_checkpoint(); }),
            "the run has no folder; accepted: RunLocation::create() or resume()");
  EXPECT_EQ(error_of([&] { return run.write_weights(); }),
            "the run has no folder; accepted: RunLocation::create() or resume()");
}

TEST_F(RunTest, IsMadeWithoutAFolderWhereSomethingIsWrong) {
  configuration_.monitor = "nothing*";
  const auto workload = dense_workload(configuration_);
  EXPECT_THAT(
      error_of([&] { rubato::Run(configuration_, workload, RunLocation::create(folder_)); }),
      StartsWith("--monitor: "));
  EXPECT_FALSE(fs::exists(folder_));
  EXPECT_EQ(error_of([&] { rubato::Run(configuration_, nullptr); }),
            "a run needs a workload; accepted: any but null");
}

// Paused and executed again, and gone on with in another process: the same bits.
TEST_F(RunTest, GoesOnFromWhereItWasPaused) {
  const std::string expected = weights_of(configuration_);
  for (const bool in_place : {true, false}) {
    const fs::path where = folder_ / (in_place ? "same" : "other");
    auto run = std::make_unique<rubato::Run>(configuration_, dense_workload(configuration_),
                                             RunLocation::create(where));
    run->trainer().add_observer<PauseAfter>(11);
    ASSERT_EQ(run->execute().end, RunEnd::paused);
    EXPECT_FALSE(fs::exists(where / "summary.json"));
    if (!in_place) {
      run->write_checkpoint();
      run.reset();
      run = std::make_unique<rubato::Run>(configuration_, dense_workload(configuration_),
                                          RunLocation::resume(where, configuration_));
      EXPECT_EQ(run->location().from()->file.filename(), "step-11.safetensors");
      EXPECT_EQ(run->trainer().result().steps, 11);
    }
    EXPECT_EQ(run->execute().summary.value().weights_sha256, expected);
    EXPECT_EQ(lines_of(where / "metrics.jsonl"), 24 + 3);
  }
}

// With an evaluation and a summary, unlike one that was paused; and then as if it had not been.
TEST_F(RunTest, GoesOnFromWhereItWasStoppedForNow) {
  const std::string expected = weights_of(configuration_);
  for (const char* const every : {"5steps", "1epochs", "never"}) {
    configuration_.checkpoint_every = every;
    const fs::path where = temp_.path() / every;
    {
      rubato::Run run(configuration_, dense_workload(configuration_), RunLocation::create(where));
      run.trainer().add_observer<StopForNowAfter>(run, 11);
      const RunOutcome outcome = run.execute();
      ASSERT_EQ(outcome.end, RunEnd::stopped);
      EXPECT_EQ(outcome.summary.value().end, RunEnd::stopped);
      EXPECT_EQ(outcome.summary.value().stopped, "after 11");
    }
    EXPECT_TRUE(fs::exists(where / "summary.json"));
    EXPECT_EQ(lines_of(where / "metrics.jsonl"), 11 + 2);

    rubato::Run other(configuration_, dense_workload(configuration_),
                      RunLocation::resume(where, configuration_));
    EXPECT_EQ(other.trainer().result().steps, 11);
    EXPECT_EQ(other.execute().summary.value().weights_sha256, expected) << every;
    EXPECT_EQ(lines_of(where / "metrics.jsonl"), 24 + 3);
  }
}

// In the epoch that its trace has cut short, as if it had been longer from the beginning.
TEST_F(RunTest, GoesOnInTheMiddleOfAnEpochWithALongerTrace) {
  const auto of_steps = [&](int steps) {
    std::string rows = "step,batchsize\n";
    for (int i = 0; i < steps; ++i) rows += fmt::format("{},{}\n", i, i % 2 == 0 ? 64 : 32);
    RunConfiguration configuration = small();
    configuration.trace = temp_.write(fmt::format("{}.csv", steps), rows).string();
    configuration.on_trace_end = TraceEnd::stop;
    return configuration;
  };
  const RunConfiguration shorter = of_steps(15);
  const RunConfiguration longer = of_steps(27);
  for (const char* const every : {"60seconds", "5steps", "1epochs"}) {
    const fs::path folder = temp_.path() / every;
    const auto with = [&](RunConfiguration configuration) {
      configuration.checkpoint_every = every;
      return configuration;
    };
    {
      rubato::Run run(with(shorter), dense_workload(shorter), RunLocation::create(folder));
      EXPECT_EQ(run.execute().summary.value().stopped, "the trace ended after 15 steps");
      EXPECT_EQ(lines_of(folder / "metrics.jsonl"), 15 + 2) << "the part is evaluated";
    }
    {
      rubato::Run same(with(shorter), dense_workload(shorter),
                       RunLocation::resume(folder, with(shorter)));
      EXPECT_EQ(same.execute().summary.value().result.steps, 15);
      EXPECT_EQ(lines_of(folder / "metrics.jsonl"), 15 + 2);
    }
    rubato::Run run(with(longer), dense_workload(longer),
                    RunLocation::resume(folder, with(longer)));
    const RunSummary summary = run.execute().summary.value();
    EXPECT_EQ(summary.result.steps, 27);
    EXPECT_EQ(summary.weights_sha256, weights_of(longer)) << every;
    EXPECT_EQ(lines_of(folder / "metrics.jsonl"), 27 + 3);
  }
}

TEST_F(RunTest, GoesOnFromANamedCheckpointAndKeepsTheLaterOnes) {
  outcome_of(configuration_, RunLocation::create(folder_));
  const fs::path file = folder_ / "checkpoints" / "step-20.safetensors";
  rubato::Run run(configuration_, dense_workload(configuration_),
                  RunLocation::resume(folder_, configuration_, file));
  ASSERT_TRUE(run.kept_in());
  EXPECT_EQ(*run.kept_in(), folder_ / "newer-than-step-20");
  EXPECT_TRUE(fs::exists(*run.kept_in() / "weights.safetensors"));
  EXPECT_FALSE(fs::exists(folder_ / "weights.safetensors"));
  EXPECT_EQ(run.execute().summary->weights_sha256, weights_of(configuration_));
}

// Results of more steps than the newest checkpoint has are kept; others are of the same training.
TEST_F(RunTest, KeepsResultsThatAreLaterThanItsCheckpoints) {
  // With the steps in the summary as they are named there.
  const auto kept_in = [&](const char* steps, const nlohmann::json& steps_of_summary) {
    const test::TempFolder temp;
    const fs::path folder = temp.path() / "run";
    outcome_of(configuration_, RunLocation::create(folder));
    fs::remove(folder / "checkpoints" / "step-24.safetensors");
    auto summary = nlohmann::json::parse(read_file(folder / "summary.json"));
    EXPECT_EQ(summary.at("steps"), 24);
    summary.erase("steps");
    summary[steps] = steps_of_summary;
    write_file(folder / "summary.json", summary.dump());
    rubato::Run run(configuration_, dense_workload(configuration_),
                    RunLocation::resume(folder, configuration_));
    EXPECT_EQ(run.trainer().result().steps, 20);
    EXPECT_EQ(fs::exists(folder / "summary.json"), !run.kept_in());
    if (!run.kept_in()) return std::string("nothing kept");
    EXPECT_TRUE(fs::exists(*run.kept_in() / "summary.json"));
    return run.kept_in()->filename().string();
  };
  EXPECT_EQ(kept_in("steps", 24), "newer-than-step-20");
  EXPECT_EQ(kept_in("steps", 21), "newer-than-step-20");
  EXPECT_EQ(kept_in("steps", 20), "nothing kept");
  // Nobody knows of how many steps it is.
  EXPECT_EQ(kept_in("steps", "20"), "newer-than-step-20");
  EXPECT_EQ(kept_in("step", 20), "newer-than-step-20");
}

// The names and contents of all files below a folder.
std::map<std::string, std::string> files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files.emplace(fs::relative(entry.path(), folder), read_file(entry.path()));
  }
  return files;
}

// What a resume sets aside is set aside as a whole: a process that is killed in it, before any of
// its fsync() and rename() calls, leaves a folder in which the next one completes it.
TEST_F(RunTest, SetsAsideWhatIsNewerThoughItIsKilledInIt) {
  const auto workload = dense_workload(configuration_);
  const fs::path finished = temp_.path() / "finished";
  rubato::Run(configuration_, workload, RunLocation::create(finished)).execute();
  const fs::path run = folder_;
  const auto begin_anew = [&] {
    fs::remove_all(run);
    fs::copy(finished, run, fs::copy_options::recursive);
  };
  // All that a resume does with the folder before it writes.
  const auto set_aside = [&] {
    const RunFolder folder = RunFolder::existing(run);
    finish_setting_aside(folder);
    const fs::path from = run / "checkpoints" / "step-15.safetensors";
    set_aside_newer(folder, {.from = from, .named = true, .now = configuration_});
  };
  begin_anew();
  set_aside();
  const auto expected = files_in(run);
  EXPECT_EQ(expected.count("newer-than-step-15/checkpoints/step-24.safetensors"), 1U);
  EXPECT_EQ(expected.count("newer-than-step-15/summary.json"), 1U);
  EXPECT_EQ(expected.count("summary.json"), 0U);

  std::size_t killed = 0;
  for (bool goes_on = true; goes_on;) {
    begin_anew();
    const pid_t child = fork();
    if (child == 0) {
      test::FileCalls calls(run);
      calls.exit_at(killed);
      set_aside();
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    goes_on = WEXITSTATUS(status) != 0;
    if (goes_on) ++killed;
    set_aside();
    ASSERT_EQ(files_in(run), expected) << "killed before call " << killed;
  }
  EXPECT_GT(killed, 15U);
}

// Where hosts come and go, and could not go on in it.
TEST_F(RunTest, IsNotResumedWhereItHasGoneOnInAnotherFolder) {
  const auto error = [&] {
    return error_of([&] { return RunLocation::resume(folder_, configuration_); });
  };
  Handover handover;
  {
    rubato::Run run(configuration_, dense_workload(configuration_), RunLocation::create(folder_));
    run.trainer().add_observer<PauseAfter>(11);
    run.execute();
    run.write_checkpoint();
    handover = hand_over(run);
  }
  EXPECT_EQ(error(), "no error");
  mark_moved(folder_, temp_.path() / "a" / ".." / "run-2", 11);
  EXPECT_EQ(
      error(),
      fmt::format("{}: after 11 steps the run continued in {}; accepted: that folder, or this "
                  "one without moved.txt",
                  folder_.string(), (temp_.path() / "run-2").string()));
  // It comes back.
  static_cast<void>(RunLocation::take_over(folder_, configuration_, handover));
  EXPECT_EQ(error(), "no error");
}

TEST_F(RunTest, IsNotResumedWithOtherOptionsOrFromElsewhere) {
  outcome_of(configuration_, RunLocation::create(folder_));
  RunConfiguration other = configuration_;
  other.learning_rate = 0.5;
  EXPECT_THAT(error_of([&] { return RunLocation::resume(folder_, other); }),
              HasSubstr("--lr was 0.01, is 0.5"));
  EXPECT_THAT(error_of([&] {
                return RunLocation::resume(folder_, configuration_, folder_ / "no.safetensors");
              }),
              StartsWith("no such checkpoint as "));
  EXPECT_THAT(error_of([&] { return RunLocation::resume(temp_.path() / "none", configuration_); }),
              HasSubstr("no such folder"));
}

TEST_F(RunTest, ThatDivergesIsAResult) {
  configuration_.learning_rate = 1e30;
  rubato::Run run(configuration_, dense_workload(configuration_), RunLocation::create(folder_));
  const RunOutcome outcome = run.execute();
  EXPECT_EQ(outcome.end, RunEnd::diverged);
  EXPECT_THAT(outcome.reason, HasSubstr("became infinite"));
  const auto summary = nlohmann::json::parse(read_file(folder_ / "summary.json"));
  EXPECT_EQ(summary.at("stopped"), outcome.reason);
  EXPECT_TRUE(fs::exists(folder_ / "weights.safetensors"));
}

// A checkpoint knows how much of the metrics and of TensorBoard's events there was: what it counts
// on is on the disk before it.
TEST_F(RunTest, BringsItsRecordsToTheDiskBeforeACheckpoint) {
  configuration_.tensorboard = true;
  test::FileCalls calls(temp_.path());
  rubato::Run run(configuration_, dense_workload(configuration_),
                  RunLocation::create(calls.folder() / "run"));
  run.execute();
  bool metrics = false;
  bool events = false;
  int checkpoints = 0;
  for (const std::string& call : calls.log()) {
    metrics = metrics || call == "fsync run/metrics.jsonl";
    events = events || call.starts_with("fsync run/events.out.tfevents.");
    if (!call.starts_with("rename run/checkpoints/")) continue;
    EXPECT_TRUE(metrics && events) << call;
    metrics = events = false;
    ++checkpoints;
  }
  EXPECT_EQ(checkpoints, 5) << "after 5, 10, 15 and 20 of 24 steps, and at the end";
}

TEST_F(RunTest, KeepsTheBestWeights) {
  configuration_.keep_best = true;
  rubato::Run run(configuration_, dense_workload(configuration_), RunLocation::create(folder_));
  run.execute();
  const auto best = run.best()->parameters().front().values<float>();
  EXPECT_EQ(read_state(folder_ / "best.safetensors").values<float>("parameters"),
            std::vector(best.begin(), best.end()));
}

TEST_F(RunTest, ContinuesWithoutAFolderToTheSameBits) {
  const auto whole = outcome_of(configuration_).summary.value();
  rubato::Run first(configuration_, dense_workload(configuration_));
  first.trainer().add_observer<PauseAfter>(11);
  ASSERT_EQ(first.execute().end, RunEnd::paused);
  const State state = first.trainer().state();
  configuration_.threads = 1;
  const auto rest = outcome_of(configuration_, RunLocation::continue_from(state, configuration_));
  EXPECT_EQ(rest.summary.value().weights_sha256, whole.weights_sha256);
  configuration_.learning_rate = 0.7;
  EXPECT_THAT(error_of([&] { return RunLocation::continue_from(state, configuration_); }),
              HasSubstr("--lr"));
}

}  // namespace
}  // namespace rubato
