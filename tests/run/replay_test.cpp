// Steps that are repeated, also those that a fork has from another run, and their comparison.

#include "runs/run/replay.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <rubato/base/state.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/workload.hpp>

#include "base/core/file.hpp"
#include "run/runs.hpp"
#include "run/runs_in_folders.hpp"
#include "runs/run/run_history.hpp"
#include "support/changed_state.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

// 3 epochs of 8 steps without a checkpoint before the last.
RunConfiguration of_24_steps() {
  return {.model = "quadratic:dim=5,samples=512",
          .trace = "64",
          .learning_rate = 0.05,
          .momentum = 0.9,
          .epochs = 3,
          .threads = 2,
          .digest = "every=1"};
}

class ReplayTest : public test::RunsInFolders {
 protected:
  // "run", "a" with another rate after step 10, and "b" with a third one after step 15.
  void train_forks() const {
    RunConfiguration run = of_24_steps();
    train("run", run);
    run.learning_rate = 0.02;
    fork("a", run, "run", 10);
    run.learning_rate = 0.03;
    fork("b", run, "a", 15);
  }
  [[nodiscard]] ReplayRequest request(const std::string& name, std::int64_t first,
                                      std::int64_t last) const {
    return {.run = folder(name),
            .first = first,
            .last = last,
            .configuration = configuration_of_run(folder(name), {})};
  }
  [[nodiscard]] ReplayResult repeat(const std::string& name, std::int64_t first,
                                    std::int64_t last) const {
    return replay(request(name, first, last), replay_);
  }
  // What a fork of the run "run" after a step is refused with.
  [[nodiscard]] std::string refused(std::int64_t step) const {
    RunConfiguration fork = configuration_of_run(folder("run"), {});
    fork.from = point("run", step);
    return error_of([&] { return location_of_fork(folder("fork"), fork, replay_); });
  }
  // Flips a bit in a checkpoint of the run "run" (test::flip_bits()), and returns its file.
  [[nodiscard]] fs::path flip(std::int64_t step, const std::string& part) const {
    fs::path file = folder("run") / "checkpoints" / fmt::format("step-{}.safetensors", step);
    test::flip_bits(file, part);
    return file;
  }
  // The rates of the steps in a folder, by the number of steps with that one.
  [[nodiscard]] static std::vector<std::pair<std::int64_t, double>> rates(const fs::path& run) {
    std::vector<std::pair<std::int64_t, double>> rates;
    for (const auto& [step, numbers] : recorded_steps(run).numbers) {
      rates.emplace_back(step, numbers.learning_rate);
    }
    return rates;
  }
  // A configuration on samples of a file.
  [[nodiscard]] RunConfiguration on_file() const {
    write_rows(0);
    return test::with_options(of_24_steps(),
                              "model=softmax digest=every=10 data=csv:" + folder("d.csv").string());
  }
  // Writes the samples, of which so many at the beginning have changed.
  void write_rows(int changed) const {
    std::string text = "a,b,y\n";
    for (int i = 0; i < 512; ++i) {
      const int a = i * 37 % 101 - 50;
      const int b = i * 53 % 89 - 44;
      text += i < changed ? fmt::format("{}.25,{}.75,{}\n", b, a, i % 2)
                          : fmt::format("{}.5,{}.5,{}\n", a, b, a + b > 0 ? 1 : 0);
    }
    write_file(folder("d.csv"), text);
  }
};

TEST_F(ReplayTest, OfStepsBeforeAForkHasTheOptionsOfItsOrigin) {
  train_forks();
  for (const std::string name : {"a", "b"}) {
    const ReplayResult result = repeat(name, 1, 9);
    EXPECT_EQ(result.difference, "");
    EXPECT_EQ(result.digests, 9);
    EXPECT_EQ(result.losses, 9);
    const auto of_run = rates(folder("run"));
    EXPECT_EQ(rates(result.folder), std::vector(of_run.begin(), of_run.begin() + 9));
    EXPECT_FALSE(is_there(result.folder / "weights")) << "nobody has asked for them";
  }
}

TEST_F(ReplayTest, OfStepsBeforeAForkHasTheRuleOfItsOrigin) {
  RunConfiguration run =
      test::with_options(of_24_steps(), "ref-batch=32 lr=0.02 rule=root digest=never");
  train("run", run);
  run.rule = "linear";
  fork("a", run, "run", 10);
  const ReplayResult result = repeat("a", 1, 12);
  EXPECT_EQ(result.difference, "");
  EXPECT_EQ(result.losses, 12);
  const auto of_origin = recorded_steps(folder("run")).numbers;
  const auto repeated = recorded_steps(result.folder).numbers;
  for (std::int64_t step = 1; step <= 10; ++step) {
    EXPECT_FALSE(repeated.at(step).difference_from(of_origin.at(step))) << step;
  }
  EXPECT_EQ(repeated.at(11).difference_from(of_origin.at(11)).value().name, "learning rate");
}

TEST_F(ReplayTest, OverForksHasTheOptionsOfEach) {
  train_forks();
  ReplayRequest asked = request("b", 9, 17);
  asked.weights_every = 1;
  const ReplayResult result = replay(asked, replay_);
  EXPECT_EQ(result.difference, "");
  EXPECT_EQ(result.digests, 9);
  auto wanted = rates(folder("b"));
  wanted = {wanted.begin() + 8, wanted.begin() + 17};
  EXPECT_EQ(rates(result.folder), wanted);
  EXPECT_NE(wanted[1].second, wanted[2].second);
  EXPECT_NE(wanted[6].second, wanted[7].second);
  for (std::int64_t step = 9; step <= 17; ++step) {
    EXPECT_TRUE(is_there(result.folder / "weights" / fmt::format("step-{}.safetensors", step)));
  }
  // Its own history is that of the steps, too.
  RunConfiguration again = of_24_steps();
  again.learning_rate = 0.03;
  again.from = fmt::format("{}@12", result.folder.string());
  EXPECT_EQ(error_of([&] { return location_of_fork({}, again, replay_); }), "no error");
}

TEST_F(ReplayTest, OverAForkGoesOnWhereItWasInterrupted) {
  train_forks();
  for (const std::int64_t at : {9, 10, 11, 16}) {
    ReplayRequest asked = request("b", 8, 17);
    asked.configuration.checkpoint_every = "1steps";
    ReplayParts parts = replay_;
    parts.on_step = [&](std::int64_t steps) {
      if (steps == at) throw std::runtime_error("interrupted");
    };
    EXPECT_THROW(static_cast<void>(replay(asked, parts)), std::runtime_error);
    std::int64_t repeated = 0;
    parts.on_step = [&](std::int64_t /*steps*/) { ++repeated; };
    const ReplayResult result = replay(asked, parts);
    EXPECT_EQ(result.folder, folder("b") / "replays" / "8-17");
    EXPECT_EQ(result.difference, "");
    EXPECT_EQ(result.digests, 10) << at;
    EXPECT_LE(repeated, 17 - at + 6) << at;
    fs::remove_all(folder("b") / "replays");
  }
}

TEST_F(ReplayTest, CountsWhatItHasCompared) {
  RunConfiguration run = of_24_steps();
  run.digest = "never";
  train("run", run);
  const ReplayResult of_losses = repeat("run", 3, 7);
  EXPECT_EQ(of_losses.digests, 0);
  EXPECT_EQ(of_losses.losses, 5);
  run.exact = false;
  run.threads = 1;
  train("loose", run);
  EXPECT_EQ(repeat("loose", 3, 7).losses, 0);
}

// No checkpoint is loaded, which would be bound to the data.
TEST_F(ReplayTest, IsRefusedOnOtherDataBeforeTheFirstCheckpoint) {
  train("run", on_file());
  EXPECT_EQ(repeat("run", 1, 5).difference, "");
  fs::remove_all(folder("run") / "replays");
  write_rows(1);
  constexpr const char* kOther = "the training data are not the data of the run";
  EXPECT_THAT(error_of([&] { return repeat("run", 1, 5); }), HasSubstr(kOther));
  EXPECT_THAT(refused(0), HasSubstr(kOther));
  EXPECT_THAT(refused(5), HasSubstr(kOther));
  EXPECT_FALSE(is_there(folder("fork")));
}

// A run without checkpoints and digests has its losses.
TEST_F(ReplayTest, FindsOtherDataByTheLoss) {
  train("run", test::with_options(on_file(), "checkpoint-every=never digest=never"));
  write_rows(300);
  EXPECT_THAT(repeat("run", 1, 5).difference,
              AllOf(HasSubstr("step 1 has the loss"),
                    HasSubstr("; the same kernels and versions have computed it, so its files")));
  // Also if no step of it is needed.
  for (const std::int64_t step : {0, 5}) {
    EXPECT_THAT(refused(step),
                AllOf(HasSubstr("step 1 has the loss"), HasSubstr("its data have changed")));
  }
}

// The checkpoints tell of processes before the last one, and the summary of that.
TEST_F(ReplayTest, NamesTheKernelsAndVersionsThatDiffer) {
  const RunConfiguration run =
      test::with_options(on_file(), "checkpoint-every=10steps keep=9 digest=never");
  train("run", run);
  fork("a", run, "run", 12);
  const ComputedBy own = RunHistory::of(folder("run"), {}).computed_by(24);
  EXPECT_TRUE(own.contains("kernels.eigen"));
  EXPECT_TRUE(own.contains("versions.rubato"));
  const fs::path file = folder("run") / "checkpoints" / "step-10.safetensors";
  write_state(file, test::with_changes(
                        read_state(file), [](const auto&, auto&) { return true; },
                        [](const auto& name, auto& text) {
                          if (name == "observer/kernels/in_use") text = "Eigen none, ATen NO AVX";
                          return true;
                        }));
  const ComputedBy other{{"kernels.eigen", "none"}, {"kernels.aten", "NO AVX"}};
  for (const std::string name : {"run", "a"}) {
    const RunHistory history = RunHistory::of(folder(name), {});
    EXPECT_EQ(history.computed_by(1), other);
    EXPECT_EQ(history.computed_by(10), other);
    EXPECT_EQ(history.computed_by(11), own);
    EXPECT_EQ(history.computed_by(24), own);
  }
  const fs::path summary = folder("run") / "summary.json";
  auto json = nlohmann::json::parse(read_file(summary));
  json["versions"]["rubato"] = "0.0.0";
  write_file(summary, json.dump());
  fs::remove_all(folder("run") / "checkpoints");
  write_rows(300);
  EXPECT_THAT(repeat("run", 1, 5).difference,
              AllOf(HasSubstr("step 1 has the loss"),
                    HasSubstr("; what computes it differs (versions.rubato was 0.0.0 and is "),
                    HasSubstr("), or its files or its data have changed")));
  fs::remove_all(folder("run"));
  EXPECT_EQ(RunHistory(folder("a"), configuration_of_run(folder("a"), {})).computed_by(1),
            ComputedBy());
}

TEST_F(ReplayTest, IsRefusedIfTheMetricsHaveChanged) {
  train("run", of_24_steps());
  const fs::path metrics = folder("run") / "metrics.jsonl";
  const std::string good = read_file(metrics);
  write_file(metrics, good.substr(0, good.find("\"step\":15,") + 20));
  const auto cut = AllOf(HasSubstr("metrics.jsonl is not the file that the run wrote"),
                         HasSubstr("; it has 15 of 24 steps"));
  EXPECT_THAT(error_of([&] { return repeat("run", 1, 5); }), cut);
  EXPECT_THAT(refused(5), cut);
  EXPECT_FALSE(is_there(folder("fork")));
  // One that trains has an end like this.
  fs::remove(folder("run") / "summary.json");
  EXPECT_EQ(repeat("run", 1, 5).difference, "");
}

// No step has a digest.
TEST_F(ReplayTest, FindsOtherWeightsAtTheEnd) {
  train("run", test::with_options(of_24_steps(), "digest=never"));
  EXPECT_EQ(refused(24), "no error");
  const fs::path file = flip(24, "parameter.");
  EXPECT_THAT(refused(24), HasSubstr("its weights after step 24 are not those of summary.json"));
  fs::remove(file);
  EXPECT_EQ(refused(24), "no error");
}

TEST_F(ReplayTest, FindsOtherBatchesAndRates) {
  train("run", of_24_steps());
  // It says that the metrics have changed.
  fs::remove(folder("run") / "summary.json");
  const fs::path metrics = folder("run") / "metrics.jsonl";
  const std::string good = read_file(metrics);
  const auto with = [&](const std::string& was, const std::string& is) {
    std::string text = good;
    text.replace(text.find(was), was.size(), is);
    write_file(metrics, text);
    std::string difference = repeat("run", 1, 3).difference;
    fs::remove_all(folder("run") / "replays");
    return difference;
  };
  EXPECT_THAT(with("\"batch\":64", "\"batch\":96"), HasSubstr("step 1 has the batch 64 when"));
  EXPECT_THAT(with("\"lr\":", "\"lr\":1"), HasSubstr("step 1 has the learning rate 0.0"));
}

TEST_F(ReplayTest, FindsAStateThatIsNotThatOfItsStep) {
  train("run", test::with_options(of_24_steps(), "checkpoint-every=10steps keep=9"));
  const fs::path file = flip(10, "optimizer.velocity");
  EXPECT_THAT(repeat("run", 12, 13).difference,
              AllOf(HasSubstr("step-10.safetensors: the state has the digest"),
                    HasSubstr("the run without this file")));
  fs::remove(file);
  EXPECT_EQ(repeat("run", 12, 13).difference, "");
}

// The options of the steps of a fork of a fork that begins before that one does.
TEST(RunHistories, HaveTheStepsOfEachRun) {
  const test::TempFolder temp;
  const auto write = [&](const std::string& name, const std::string& from) {
    write_file(temp.path() / name / "config.toml",
               from.empty() ? "lr = 1\n" : fmt::format("from = \"../{}\"\nlr = 2\n", from));
  };
  const auto history = [&](const std::string& name) {
    const RunHistory found(temp.path() / name, configuration_of_run(temp.path() / name, {}));
    std::vector<std::string> texts;
    for (const RunSegment& segment : found.segments()) {
      texts.push_back(fmt::format("{} {}", segment.run.filename().string(), segment.begin));
    }
    return texts;
  };
  for (const char* name : {"run", "a", "b", "c", "d"}) fs::create_directories(temp.path() / name);
  write("run", "");
  write("a", "run@30");
  write("b", "a@10");
  write("c", "a@50");
  write("d", "a@30");
  EXPECT_THAT(history("run"), ElementsAre("run 0"));
  EXPECT_THAT(history("a"), ElementsAre("run 0", "a 30"));
  EXPECT_THAT(history("b"), ElementsAre("run 0", "b 10"));
  EXPECT_THAT(history("c"), ElementsAre("run 0", "a 30", "c 50"));
  EXPECT_THAT(history("d"), ElementsAre("run 0", "a 30", "d 30"));
  const RunHistory of_c(temp.path() / "c", configuration_of_run(temp.path() / "c", {}));
  EXPECT_EQ(of_c.of_step(0), 0U);
  EXPECT_EQ(of_c.of_step(30), 0U);
  EXPECT_EQ(of_c.of_step(31), 1U);
  EXPECT_EQ(of_c.of_step(51), 2U);
  EXPECT_EQ(of_c.end_of(0, 99), 30);
  EXPECT_EQ(of_c.end_of(1, 40), 40);
  EXPECT_EQ(of_c.end_of(2, 99), 99);

  fs::remove_all(temp.path() / "run");
  EXPECT_THAT(history("c"), ElementsAre("a 30", "c 50"));
  const RunHistory rest(temp.path() / "c", configuration_of_run(temp.path() / "c", {}));
  EXPECT_EQ(rest.of_step(31), 0U);
  EXPECT_THAT(error_of([&] { return rest.of_step(30); }),
              AllOf(HasSubstr("run, the origin of "), HasSubstr("/a, is gone")));
  // A fork in the place of its origin is not its own origin.
  fs::rename(temp.path() / "a", temp.path() / "run");
  EXPECT_THAT(history("run"), ElementsAre("run 30"));
}

}  // namespace
}  // namespace rubato
