// Workers leave runs to each other. Each is an object here; one that is killed is a child process.

#include "runs/experiment/conduct/worker.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using test::read_file;

class Workers : public testing::Test {
 protected:
  // An attempt with a checkpoint after so many steps.
  static void begin(const fs::path& attempt, int steps) {
    fs::create_directories(attempt / "checkpoints");
    const std::string checkpoint = "checkpoints/step-" + std::to_string(steps) + ".safetensors";
    for (const std::string& name :
         {std::string("config.toml"), std::string("metrics.jsonl"), checkpoint}) {
      std::ofstream(attempt / name) << steps;
    }
  }
  // A worker that begins the run, is killed, and leaves its folder.
  void leave(int steps, bool ends = false) const {
    const pid_t child = fork();
    if (child == 0) {
      const Worker worker(folder_.path());
      begin(worker.attempt_at(run_).folder, steps);
      if (ends) std::ofstream(worker.attempt_at(run_).folder / "summary.json") << "{}";
      kill(getpid(), SIGKILL);
    }
    waitpid(child, nullptr, 0);
  }
  // The folder of a worker of another machine, with its attempt.
  [[nodiscard]] fs::path far_attempt(int steps) const {
    fs::path attempt = folder_.path() / "workers/far.00000000.7/runs/a";
    begin(attempt, steps);
    return attempt;
  }
  [[nodiscard]] fs::path claim() const { return run_.folder.string() + ".claim1"; }
  void claim_for(const std::string& worker) const {
    fs::create_directories(claim().parent_path());
    fs::create_symlink(worker, claim());
  }
  static void let_be_silent(const fs::path& attempt, std::chrono::seconds time) {
    const auto then = fs::file_time_type::clock::now() - time;
    for (const char* name : {"metrics.jsonl", "checkpoints", ""}) {
      fs::last_write_time(name[0] == 0 ? attempt : attempt / name, then);
    }
  }
  [[nodiscard]] fs::path work() const { return folder_.path() / "workers"; }

  const test::TempFolder folder_;
  const RunFiles run_ = files_of(folder_.path(), "a", false);
};

TEST_F(Workers, LeaveNothingWhereNothingIsUnderWay) {
  {
    const Worker one(folder_.path());
    const Worker other(folder_.path());
    EXPECT_NE(one.attempt_at(run_).folder, other.attempt_at(run_).folder);
    EXPECT_EQ(std::distance(fs::directory_iterator(work()), {}), 2);
  }
  EXPECT_FALSE(fs::exists(work()));
}

// The folders of workers that are gone are moved, and nothing is left of them.
TEST_F(Workers, ContinueTheFurthestOfThoseThatAreGone) {
  for (const int steps : {3, 8, 5}) leave(steps);
  const Worker worker(folder_.path());
  EXPECT_TRUE(worker.claim(run_)) << "they are known to be gone";
  worker.take_over(run_);
  EXPECT_EQ(read_file(worker.attempt_at(run_).folder / "config.toml"), "8");
  EXPECT_EQ(state_of(worker.attempt_at(run_)), RunState::begun);
  const Worker next(folder_.path());
  EXPECT_EQ(std::distance(fs::directory_iterator(work()), {}), 2);
}

// A result that its worker could not publish any more is as good as any.
TEST_F(Workers, TakeResultsOfThoseThatAreGone) {
  leave(8);
  leave(3, /*ends=*/true);
  const Worker worker(folder_.path());
  worker.take_over(run_);
  EXPECT_EQ(state_of(worker.attempt_at(run_)), RunState::ended);
}

// It may be alive, wherever it is: its files stay as they are.
TEST_F(Workers, CopyWhatAnotherMachineMayStillTrain) {
  const fs::path far = far_attempt(9);
  leave(4);
  std::ofstream(far / "summary.json") << "{}";
  std::ofstream(far / "checkpoints/step-2.safetensors") << "older";
  const Worker worker(folder_.path());
  worker.take_over(run_);
  const fs::path mine = worker.attempt_at(run_).folder;
  EXPECT_EQ(read_file(mine / "checkpoints/step-9.safetensors"), "9");
  EXPECT_EQ(read_file(mine / "metrics.jsonl"), "9");
  EXPECT_FALSE(fs::exists(mine / "checkpoints/step-2.safetensors"));
  EXPECT_FALSE(fs::exists(mine / "summary.json")) << "its weights may not be complete";
  EXPECT_TRUE(fs::exists(far / "summary.json"));
  EXPECT_TRUE(fs::exists(far / "checkpoints/step-2.safetensors"));
}

// A checkpoint that is a broken link is listed and cannot be read, like one that is pruned after it
// was listed.
TEST_F(Workers, CopyNoRunWhoseCheckpointIsPrunedMeanwhile) {
  const fs::path far = far_attempt(9);
  fs::remove(far / "checkpoints/step-9.safetensors");
  fs::create_symlink("pruned", far / "checkpoints/step-9.safetensors");
  const Worker worker(folder_.path());
  const fs::path mine = worker.attempt_at(run_).folder;
  begin(mine, 4);
  worker.take_over(run_);
  EXPECT_EQ(read_file(mine / "checkpoints/step-4.safetensors"), "4");

  const fs::path shared = folder_.path() / "shared/a";
  EXPECT_FALSE(worker.share(far, shared, 9));
  EXPECT_FALSE(fs::exists(shared));
  fs::remove(far / "checkpoints/step-9.safetensors");
  begin(far, 9);
  EXPECT_TRUE(worker.share(far, shared, 9));
}

// Nobody waits for a worker that has been silent for a minute.
TEST_F(Workers, WaitForThoseThatWrite) {
  const fs::path far = far_attempt(9);
  claim_for("far.00000000.7");
  const Worker worker(folder_.path());
  EXPECT_FALSE(worker.claim(run_));
  let_be_silent(far, std::chrono::seconds(90));
  EXPECT_FALSE(worker.claim(run_)) << "it has just claimed it, and may be loading its data";
  const timespec before{.tv_sec = time(nullptr) - 90, .tv_nsec = 0};
  const std::array<timespec, 2> times{before, before};
  ASSERT_EQ(utimensat(AT_FDCWD, claim().c_str(), times.data(), AT_SYMLINK_NOFOLLOW), 0);
  EXPECT_TRUE(worker.claim(run_));
  EXPECT_TRUE(worker.claim(run_)) << "once more";
  const Worker other(folder_.path());
  EXPECT_FALSE(other.claim(run_));
}

// Of several that find the claim of one that was killed, one has the next.
TEST_F(Workers, ClaimWhatThoseThatAreGoneHadClaimed) {
  claim_for("gone");
  const Worker one(folder_.path());
  const Worker other(folder_.path());
  EXPECT_TRUE(other.claim(run_));
  EXPECT_FALSE(one.claim(run_));
  begin(other.attempt_at(run_).folder, 3);
  std::ofstream(other.attempt_at(run_).folder / "summary.json") << "{}";
  EXPECT_EQ(other.publish(run_).kind, Publication::Kind::first);
  EXPECT_EQ(std::distance(fs::directory_iterator(run_.folder.parent_path()), {}), 1);
  EXPECT_TRUE(one.claim(run_)) << "nobody has to wait for it";
  EXPECT_EQ(std::distance(fs::directory_iterator(run_.folder.parent_path()), {}), 1);
}

TEST_F(Workers, RemoveWhatNobodyNeeds) {
  const fs::path far = far_attempt(9);
  leave(4);
  const Worker worker(folder_.path());
  let_be_silent(far, std::chrono::hours(2));
  worker.clean_up();
  EXPECT_EQ(std::distance(fs::directory_iterator(work()), {}), 3) << "the run has no result";
  fs::create_directories(run_.folder);
  std::ofstream(run_.folder / "summary.json") << "{}";
  begin(far, 10);
  worker.clean_up();
  EXPECT_EQ(std::distance(fs::directory_iterator(work()), {}), 2) << "one is still written";
  let_be_silent(far, std::chrono::hours(2));
  worker.clean_up();
  EXPECT_FALSE(fs::exists(far));
}

TEST_F(Workers, KeepEveryFailureOfARunThatHasEnded) {
  const Worker worker(folder_.path());
  folder_.write("runs/a/summary.json", "{}");
  for (const char* words : {"one", "two"}) {
    EXPECT_EQ(worker.publish_failure(run_, words).kind, Publication::Kind::differs);
  }
  std::string machine(256, '\0');
  ASSERT_EQ(gethostname(machine.data(), machine.size()), 0);
  machine.resize(machine.find('\0'));
  const std::string file = (folder_.path() / "different/runs/a@").string() + machine + ".failed";
  EXPECT_EQ(read_file(file), "one");
  EXPECT_EQ(read_file(file + "-2"), "two");
  const std::string who = " of " + machine + " (failed); ";
  EXPECT_THAT(differences_in(folder_.path()),
              ElementsAre(HasSubstr(", and " + file + who), HasSubstr(file + "-2" + who)));
}

TEST_F(Workers, KeepDamagedRunsBesideThoseThatAreDoneAgain) {
  const Worker worker(folder_.path());
  for (const char* name : {"a", "a-2"}) {
    folder_.write("runs/a/summary.json", "half");
    EXPECT_EQ(worker.set_aside(run_), folder_.path() / "damaged" / name);
    EXPECT_EQ(read_file(folder_.path() / "damaged" / name / "summary.json"), "half");
    EXPECT_EQ(state_of(run_), RunState::absent);
  }
  EXPECT_EQ(worker.set_aside(run_), folder_.path() / "damaged/a-3") << "another one was faster";
}

TEST_F(Workers, ShowTheStateOfRuns) {
  EXPECT_EQ(state_of(run_), RunState::absent);
  folder_.write("runs/a/config.toml", "");
  // Nothing is lost where it begins anew.
  EXPECT_EQ(state_of(run_), RunState::absent);
  folder_.write("runs/a/checkpoints/step-5.safetensors", "");
  EXPECT_EQ(state_of(run_), RunState::begun);
  folder_.write("runs/a/summary.json", "");
  EXPECT_EQ(state_of(run_), RunState::ended);
  folder_.write("runs/a.failed", "");
  EXPECT_EQ(state_of(run_), RunState::failed);
}

}  // namespace
}  // namespace rubato
