// Hosts that are processes, and are killed.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/file.hpp"
#include "c10d/support.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using std::chrono::seconds;

// A run of several one_hosts; their output is in files.
class Processes : public testing::Test {
 protected:
  void start(int count, std::int64_t steps) {
    for (int rank = 0; rank < count; ++rank) start(rank, count, steps);
  }
  void TearDown() override {
    for (const pid_t process : processes_) {
      if (process > 0) kill(process, SIGKILL);
    }
  }
  // Its exit code, or the signal as a negative number.
  int end_of(std::size_t rank) {
    int status = 0;
    EXPECT_EQ(waitpid(processes_[rank], &status, 0), processes_[rank]);
    processes_[rank] = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  [[nodiscard]] std::string out(std::size_t rank) const {
    return test::read_file(file("out", static_cast<int>(rank)));
  }
  [[nodiscard]] std::string err(std::size_t rank) const {
    return test::read_file(file("err", static_cast<int>(rank)));
  }
  // Until the host has come to so many steps.
  void wait_for_steps(std::size_t rank, std::ptrdiff_t steps) const {
    const auto end = std::chrono::steady_clock::now() + seconds(60);
    const auto done = [&] {
      const std::string text = out(rank);
      return std::count(text.begin(), text.end(), '\n') >= steps;
    };
    while (!done() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_TRUE(done());
  }
  [[nodiscard]] pid_t process(std::size_t rank) const { return processes_[rank]; }

 private:
  [[nodiscard]] std::string file(const std::string& what, int rank) const {
    return folder_.path() / fmt::format("{}.{}", what, rank);
  }
  void start(int rank, int count, std::int64_t steps) {
    std::vector<std::string> arguments{
        RUBATO_ONE_HOST,      fmt::to_string(server_.port()), "run",
        fmt::to_string(rank), fmt::to_string(count),          fmt::to_string(steps)};
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, file("out", rank).c_str(),
                                     O_WRONLY | O_CREAT, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, file("err", rank).c_str(),
                                     O_WRONLY | O_CREAT, 0600);
    pid_t process = 0;
    ASSERT_EQ(posix_spawn(&process, argv[0], &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    processes_.push_back(process);
  }

  test::TempFolder folder_;
  RendezvousServer server_{0};
  std::vector<pid_t> processes_;
};

TEST_F(Processes, TrainTogether) {
  start(3, 20);
  for (const std::size_t rank : {0U, 1U, 2U}) EXPECT_EQ(end_of(rank), 0) << err(rank);
  EXPECT_THAT(out(0), testing::HasSubstr("\n19 "));
  EXPECT_EQ(out(1), out(0));
  EXPECT_EQ(out(2), out(0));
}

// c10d warns of nothing, and says nothing that is not asked for.
TEST_F(Processes, SayNothingElse) {
  start(2, 2);
  for (const std::size_t rank : {0U, 1U}) {
    EXPECT_EQ(end_of(rank), 0);
    EXPECT_EQ(err(rank), "");
  }
}

TEST_F(Processes, ThatAreKilledEndTheOthers) {
  start(3, 1'000'000);
  wait_for_steps(0, 10);
  kill(process(1), SIGKILL);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(end_of(1), -SIGKILL);
  EXPECT_EQ(end_of(0), 2);
  EXPECT_EQ(end_of(2), 2);
  // The time limit is five minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(60));
  EXPECT_THAT(err(0), testing::MatchesRegex("host 0: host [12] is lost: .+\n"));
  EXPECT_THAT(err(2), testing::MatchesRegex("host 2: host [01] is lost: .+\n"));
}

}  // namespace
}  // namespace rubato
