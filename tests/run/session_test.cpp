// A run with its owner: what ends it early, what the owner is told, and what is left.

#include "runs/run/session.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/runs/run_folder.hpp>
#include <rubato/runs/workload.hpp>

#include "base/core/file.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

// 3 epochs of 8 steps.
RunConfiguration three_epochs() {
  return {.model = "quadratic:dim=5,samples=512", .trace = "64", .epochs = 3, .threads = 2};
}

// Wants to stop after so many questions.
class Owner final : public SessionOwner {
 public:
  explicit Owner(int patience = 1000) : patience_(patience) {}

  void warn(const std::string& text) override { told.push_back(text); }
  bool wants_to_stop() override { return --patience_ <= 0; }
  std::string to_go_on(const rubato::Run& run) const override {
    return "go on with " + run.location().path().filename().string();
  }

  std::vector<std::string> told;

 private:
  int patience_;
};

SessionParts parts_of(const RunRequest& request, Owner& owner) {
  return {.workload = dense_workload(request.run),
          .location = location_of(request, [&](const std::string& text) { owner.warn(text); })};
}

std::string trained_weights(const RunRequest& request) {
  Owner owner;
  Session session(request, parts_of(request, owner), owner);
  return session.execute().summary.value().weights_sha256;
}

class SessionTest : public testing::Test {
 protected:
  const test::TempFolder temp_;
  const fs::path folder_ = temp_.path() / "run";
};

TEST_F(SessionTest, StopsBetweenStepsAndGoesOnToTheSameBits) {
  RunRequest request{.run = three_epochs(), .out = folder_};
  request.run.checkpoint_every = "never";
  Owner impatient(11);
  {
    Session session(request, parts_of(request, impatient), impatient);
    const SessionOutcome outcome = session.execute();
    EXPECT_EQ(outcome.end, RunEnd::paused);
    EXPECT_FALSE(outcome.summary.has_value());
    // The end of an epoch is a question of its own.
    EXPECT_EQ(session.run().trainer().result().steps, 10);
    EXPECT_EQ(outcome.checkpoint, folder_ / "checkpoints" / "step-10.safetensors");
  }
  EXPECT_EQ(trained_weights({.run = request.run, .resume = folder_}),
            trained_weights({.run = three_epochs()}));
}

TEST_F(SessionTest, StopsBeforeAStepThatIsInterrupted) {
  RunRequest request{.run = three_epochs(), .out = folder_};
  int calls = 0;
  request.run.extensions.rules.add("mine", [&calls](const RuleInput& step) {
    if (++calls == 6) throw Interrupted("enough");
    return step.scale();
  });
  request.run.rule = {"mine", request.run.extensions};
  {
    Owner owner;
    Session session(request, parts_of(request, owner), owner);
    const SessionOutcome outcome = session.execute();
    EXPECT_EQ(outcome.end, RunEnd::paused);
    EXPECT_EQ(outcome.checkpoint, folder_ / "checkpoints" / "step-5.safetensors");
  }
  EXPECT_EQ(trained_weights({.run = request.run, .resume = folder_}),
            trained_weights({.run = three_epochs()}));
}

TEST_F(SessionTest, LeavesNothingWhereItIsKeptNowhere) {
  const RunRequest request{.run = three_epochs()};
  Owner impatient(3);
  Session session(request, parts_of(request, impatient), impatient);
  const SessionOutcome outcome = session.execute();
  EXPECT_EQ(outcome.end, RunEnd::paused);
  EXPECT_EQ(outcome.checkpoint, std::nullopt);
}

TEST_F(SessionTest, ThatFollowsWritesNoCheckpointsAndTellsNothing) {
  RunRequest request{.run = three_epochs(), .out = folder_};
  request.run.fault = "core=0,step=99";
  request.run.checkpoint_every = "5steps";
  for (const bool follows : {true, false}) {
    Owner owner;
    request.out = folder_ / (follows ? "follows" : "leads");
    SessionParts parts = parts_of(request, owner);
    parts.follows = follows;
    Session session(request, std::move(parts), owner);
    EXPECT_EQ(session.execute().end, RunEnd::completed);
    EXPECT_EQ(owner.told.empty(), follows);
    EXPECT_EQ(session.run().checkpoints().files().empty(), follows);
    EXPECT_EQ(session.stop().checkpoint.has_value(), !follows);
  }
}

TEST_F(SessionTest, EndsWithAReasonForTheUser) {
  const auto ended = [](RunConfiguration run) {
    const RunRequest request{.run = std::move(run)};
    Owner owner;
    Session session(request, parts_of(request, owner), owner);
    return session.execute();
  };
  RunConfiguration run = three_epochs();
  EXPECT_EQ(ended(run).end, RunEnd::completed);
  EXPECT_EQ(ended(run).reason, "");
  run.learning_rate = 1e30;
  EXPECT_EQ(ended(run).end, RunEnd::diverged);
  EXPECT_THAT(ended(run).reason, EndsWith("\ntry a lower --lr or another --rule"));
  run = {.model = "softmax", .trace = "64", .epochs = 1, .samples = 64, .threads = 2};
  run.target_accuracy = {.percent = 100};
  EXPECT_EQ(ended(run).end, RunEnd::target_missed);
  EXPECT_THAT(ended(run).reason, HasSubstr("is below --target-accuracy 100 %"));
}

TEST_F(SessionTest, TellsItsOwnerWhatIsOdd) {
  RunRequest request{.run = three_epochs()};
  request.run.straggler = "core=9,factor=2";
  request.run.fault = "core=0,step=99";
  Owner owner;
  Session session(request, parts_of(request, owner), owner);
  EXPECT_THAT(owner.told, ElementsAre("--straggler core=9 does nothing: the cores are 0 to 7"));
  owner.told.clear();
  static_cast<void>(session.execute());
  EXPECT_THAT(owner.told, ElementsAre("--fault core=0,step=99 did not happen: training ended after "
                                      "24 steps"));
}

// A model of the user's own may have none; whoever waits for it hears so after the first test.
TEST_F(SessionTest, TellsThatThereIsNoAccuracyToWatch) {
  const auto told = [](RunConfiguration run) {
    run.watch = "test-accuracy";
    const RunRequest request{.run = std::move(run)};
    Owner owner;
    Session session(request, parts_of(request, owner), owner);
    static_cast<void>(session.execute());
    return owner.told;
  };
  RunConfiguration run = three_epochs();
  EXPECT_THAT(told(run), IsEmpty());
  const std::string why =
      ": the outputs do not tell the classes apart, and have no accuracy to watch; accepted: "
      "--watch test-loss";
  run.keep_best = true;
  EXPECT_THAT(told(run), ElementsAre("--keep-best" + why));
  run.patience = 3;
  run.schedule = "plateau";
  EXPECT_THAT(told(run), ElementsAre("--patience 3, --keep-best, --schedule plateau" + why));
  run = {.model = "softmax", .trace = "64", .epochs = 1, .samples = 64, .threads = 2};
  run.keep_best = true;
  EXPECT_THAT(told(run), IsEmpty());
}

TEST_F(SessionTest, ShowsHowItGoesOn) {
  RunRequest request{.run = three_epochs()};
  request.run.log_steps = 12;
  std::string shown;
  Owner owner;
  SessionParts parts = parts_of(request, owner);
  parts.progress = ProgressOut{.write = [&shown](std::string_view text) {
    shown += text;
    return 0;
  }};
  Session session(request, std::move(parts), owner);
  static_cast<void>(session.execute());
  EXPECT_THAT(shown, HasSubstr("epoch 2/3  step 12  batch 64"));
  EXPECT_THAT(shown, HasSubstr("epoch 3/3  8 steps"));
  EXPECT_EQ(session.progress_error(), 0);
}

// What has gone from under it, with and without a checkpoint to go on from.
TEST_F(SessionTest, SaysWhatIsLeftWhereOutputIsLost) {
  for (const bool with_checkpoint : {true, false}) {
    RunRequest request{.run = three_epochs(),
                       .out = folder_ / (with_checkpoint ? "with" : "without")};
    request.run.checkpoint_every = with_checkpoint ? "3steps" : "never";
    const fs::path metrics = *request.out / "metrics.jsonl";
    int calls = 0;
    request.run.extensions.rules.add("mine", [&](const RuleInput& step) {
      if (++calls == 5) fs::remove(metrics);
      return step.scale();
    });
    request.run.rule = {"mine", request.run.extensions};
    Owner owner;
    Session session(request, parts_of(request, owner), owner);
    std::string message;
    try {
      static_cast<void>(session.execute());
    } catch (const OutputError& error) {
      message = error.what();
    }
    EXPECT_THAT(message,
                HasSubstr(with_checkpoint ? "\nthe checkpoints before it are kept; go on with with"
                                          : "\nthe weights after "));
  }
}

// A supervisor may start it before the process that it has killed is gone.
TEST_F(SessionTest, SaysThatItWaitsForAnotherProcess) {
  RunRequest request{.run = three_epochs(), .out = temp_.path() / "run", .continues = true};
  trained_weights(request);
  Owner owner;
  static_cast<void>(parts_of(request, owner));
  EXPECT_THAT(owner.told, IsEmpty());
  std::optional<RunFolder> other = RunFolder::existing(*request.out);
  const auto tell = [&](const std::string& text) {
    owner.warn(text);
    other.reset();
  };
  EXPECT_EQ(location_of(request, tell).path(), *request.out);
  EXPECT_THAT(owner.told, ElementsAre(request.out->string() +
                                      ": another process works in this run folder; waiting for it "
                                      "to end"));
}

}  // namespace
}  // namespace rubato
