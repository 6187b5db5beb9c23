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

#include <rubato/base/state.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/workload.hpp>

#include "base/core/file.hpp"
#include "run/runs.hpp"
#include "runs/run/run_history.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

using test::error_of;
using test::outcome_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

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

class ReplayTest : public testing::Test {
 protected:
  [[nodiscard]] fs::path folder(const std::string& name) const { return temp_.path() / name; }

  void train(const std::string& name, const RunConfiguration& run) const {
    static_cast<void>(outcome_of(run, RunLocation::create(folder(name))));
  }
  void fork(const std::string& name, RunConfiguration run, const std::string& of,
            std::int64_t step) const {
    run.from = fmt::format("{}@{}", folder(of).string(), step);
    static_cast<void>(outcome_of(run, location_of_fork(folder(name), run, parts_)));
  }
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
    return replay(request(name, first, last), parts_);
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
    RunConfiguration run = of_24_steps();
    run.model = "softmax";
    run.data = "csv:" + folder("d.csv").string();
    run.digest = "every=10";
    return run;
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

  const test::TempFolder temp_;
  const ReplayParts parts_{.load = dense_workload, .tell = [](const std::string&) {}};
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

TEST_F(ReplayTest, OverForksHasTheOptionsOfEach) {
  train_forks();
  ReplayRequest asked = request("b", 9, 17);
  asked.weights_every = 1;
  const ReplayResult result = replay(asked, parts_);
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
  EXPECT_EQ(error_of([&] { static_cast<void>(location_of_fork({}, again, parts_)); }), "no error");
}

TEST_F(ReplayTest, OverAForkGoesOnWhereItWasInterrupted) {
  train_forks();
  for (const std::int64_t at : {9, 10, 11, 16}) {
    RunConfiguration run = configuration_of_run(folder("b"), {});
    ReplayRequest asked = request("b", 8, 17);
    asked.configuration.checkpoint_every = "1steps";
    ReplayParts parts = parts_;
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
  EXPECT_THAT(error_of([&] { static_cast<void>(repeat("run", 1, 5)); }), HasSubstr(kOther));
  RunConfiguration fork = configuration_of_run(folder("run"), {});
  fork.from = folder("run").string() + "@5";
  EXPECT_THAT(error_of([&] { static_cast<void>(location_of_fork(folder("fork"), fork, parts_)); }),
              HasSubstr(kOther));
  EXPECT_FALSE(is_there(folder("fork")));
}

// A run without checkpoints and digests has its losses.
TEST_F(ReplayTest, FindsOtherDataByTheLoss) {
  RunConfiguration run = on_file();
  run.checkpoint_every = "never";
  run.digest = "never";
  train("run", run);
  write_rows(300);
  EXPECT_THAT(repeat("run", 1, 5).difference, HasSubstr("step 1 has the loss"));
  RunConfiguration fork = configuration_of_run(folder("run"), {});
  fork.from = folder("run").string() + "@5";
  EXPECT_THAT(error_of([&] { static_cast<void>(location_of_fork(folder("fork"), fork, parts_)); }),
              AllOf(HasSubstr("step 1 has the loss"), HasSubstr("its data have changed")));
}

TEST_F(ReplayTest, FindsOtherBatchesAndRates) {
  train("run", of_24_steps());
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
  RunConfiguration run = of_24_steps();
  run.checkpoint_every = "10steps";
  run.keep = 9;
  train("run", run);
  const fs::path file = folder("run") / "checkpoints" / "step-10.safetensors";
  State state;
  const State found = read_state(file);
  for (auto [name, array] : found.arrays()) {
    if (name == "optimizer.velocity") array.bytes.front() ^= 1;
    if (name != "rubato.sha256") state.put_array(name, array);
  }
  for (const auto& [name, text] : found.texts()) {
    if (!name.starts_with("rubato.")) state.put_text(name, text);
  }
  write_state(file, state);
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
  EXPECT_THAT(error_of([&] { static_cast<void>(rest.of_step(30)); }),
              AllOf(HasSubstr("run, the origin of "), HasSubstr("/a, is gone")));
  // A fork in the place of its origin is not its own origin.
  fs::rename(temp.path() / "a", temp.path() / "run");
  EXPECT_THAT(history("run"), ElementsAre("run 30"));
}

}  // namespace
}  // namespace rubato
