#include "base/core/fork_server.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/process.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

constexpr int kCodeOfServer = 5;

// How a child ends: "exit 3" or "signal 9".
std::string ending_of(pid_t child) {
  const int status = await_child(child);
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                             : "exit " + std::to_string(WEXITSTATUS(status));
}

// A server in a child process of the test; its own children do what the second of their words says.
class ForkServers : public testing::Test {
 protected:
  void SetUp() override {
    // ThreadSanitizer has a thread of its own.
    if (std::filesystem::hard_link_count("/proc/self/task") != 3) {
      GTEST_SKIP() << "only a process without threads forks";
    }
    ASSERT_TRUE(adopt_orphans(true));
  }
  void TearDown() override {
    if (server_ > 0) kill_child(server_);
    // Nothing is left, not even a process that has ended.
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
    static_cast<void>(adopt_orphans(false));
  }

  void start(
      const std::function<bool()>& is_prepared = [] { return true; },
      const std::function<void()>& prepare = [] {}) {
    const pid_t here = getpid();
    server_ = fork();
    ASSERT_GE(server_, 0);
    if (server_ == 0) {
      tie_to(here);
      dup2(client_.servers_end(), STDIN_FILENO);
      client_.give();
      ForkServer server;
      const auto request = server.next_child(is_prepared, prepare);
      _exit(request ? obey(*request, here) : kCodeOfServer);
    }
    client_.give();
    wait_for(ForkClient::State::prepared);
  }
  void wait_for(ForkClient::State state) {
    while (client_.state() != state) {
      ASSERT_NE(client_.state(), ForkClient::State::gone);
      usleep(1000);
    }
  }
  [[nodiscard]] pid_t child(const std::string& what, const std::string& name = "errors") {
    const auto answer =
        client_.ask({.errors = (folder_.path() / name).string(), .words = {"rubato", what, "a b"}});
    EXPECT_EQ(answer.why, "");
    return answer.child;
  }

  static int obey(const ForkRequest& request, pid_t parent) {
    const std::string& what = request.words.at(1);
    if (what == "abort") std::abort();
    if (what == "sleep") sleep(100);
    static_cast<void>(!write(STDERR_FILENO, "words\n", 6));
    return getppid() == parent && getpgrp() == getpid() ? 3 : 4;
  }

  const test::TempFolder folder_;
  ForkClient client_;
  pid_t server_ = -1;
};

TEST_F(ForkServers, ForkChildrenOfTheirParent) {
  start();
  EXPECT_EQ(ending_of(child("end")), "exit 3");
  EXPECT_EQ(test::read_file(folder_.path() / "errors"), "words\n");
}

TEST_F(ForkServers, ShowTheCommandOfAChild) {
  start();
  const pid_t sleeper = child("sleep");
  const std::string file = "/proc/" + std::to_string(sleeper) + "/cmdline";
  const std::string wanted("rubato\0sleep\0a b\0", 17);
  // The parent knows the child before the child has come so far.
  for (int i = 0; i < 1000 && test::read_file(file) != wanted; ++i) usleep(1000);
  EXPECT_EQ(test::read_file(file), wanted);
  EXPECT_EQ(test::read_file("/proc/" + std::to_string(sleeper) + "/comm"), "rubato-sleep\n");
  pass_on(sleeper, SIGTERM);
  EXPECT_EQ(ending_of(sleeper), "signal 15");
}

TEST_F(ForkServers, KeepCrashesApart) {
  start();
  const pid_t sister = child("sleep", "sister");
  EXPECT_EQ(ending_of(child("abort")), "signal 6");
  EXPECT_EQ(ending_of(child("end")), "exit 3");
  EXPECT_EQ(waitpid(sister, nullptr, WNOHANG), 0);
  kill_child(sister);
}

TEST_F(ForkServers, AreNotNeededByTheirChildren) {
  start();
  // The parent knows this child, which may not have begun.
  const pid_t sister = child("sleep", "sister");
  kill(server_, SIGKILL);
  EXPECT_EQ(ending_of(server_), "signal 9");
  server_ = -1;
  // It makes this file when it begins.
  while (!std::filesystem::exists(folder_.path() / "sister")) {
    ASSERT_EQ(waitpid(sister, nullptr, WNOHANG), 0);
    usleep(1000);
  }
  EXPECT_EQ(child("end"), 0);
  EXPECT_EQ(client_.state(), ForkClient::State::gone);
  EXPECT_EQ(waitpid(sister, nullptr, WNOHANG), 0);
  kill(sister, SIGKILL);
  EXPECT_EQ(ending_of(sister), "signal 9");
}

// The first child finds nothing to be done; before the next one, something has changed.
TEST_F(ForkServers, PrepareAgain) {
  const auto file = folder_.path() / "prepared";
  start([&] { return std::filesystem::exists(file); }, [&] { folder_.write("prepared", ""); });
  EXPECT_EQ(ending_of(child("end")), "exit 3");
  std::filesystem::remove(file);
  EXPECT_EQ(child("end"), 0);
  wait_for(ForkClient::State::prepared);
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(ending_of(child("end")), "exit 3");
}

TEST_F(ForkServers, ForkNothingWhileTheyHaveThreads) {
  start([] { return true; }, [] { std::thread([] { pause(); }).detach(); });
  const auto answer = client_.ask({.errors = "/dev/null", .words = {"rubato", "end"}});
  EXPECT_EQ(answer.child, 0);
  EXPECT_EQ(answer.why, "it has several threads");
}

// A server may hang, in the file system for instance.
TEST_F(ForkServers, AreGivenUpIfTheyDoNotAnswer) {
  start();
  kill(server_, SIGSTOP);
  const auto answer = client_.ask({.errors = "/dev/null", .words = {"rubato", "end"}},
                                  std::chrono::milliseconds(10));
  EXPECT_EQ(answer.child, 0);
  EXPECT_EQ(answer.why, "it does not answer");
  EXPECT_EQ(client_.state(), ForkClient::State::gone);
  // It forks a child nevertheless, which does not begin, as its parent does not know it.
  kill(server_, SIGCONT);
  int status = 0;
  EXPECT_NE(waitpid(-1, &status, 0), server_);
  EXPECT_EQ(WEXITSTATUS(status), kCannotStart);
}

TEST_F(ForkServers, EndWithTheConnection) {
  {
    ForkClient short_lived;
    const pid_t here = getpid();
    server_ = fork();
    if (server_ == 0) {
      tie_to(here);
      dup2(short_lived.servers_end(), STDIN_FILENO);
      short_lived.give();
      client_.give();
      // This process has a copy of the parent's end.
      closefrom(STDERR_FILENO + 1);
      ForkServer server;
      _exit(server.next_child([] { return true; }, [] {}) ? 0 : kCodeOfServer);
    }
  }
  EXPECT_EQ(ending_of(server_), "exit " + std::to_string(kCodeOfServer));
  server_ = -1;
}

TEST(ForkServer, NeedsAConnection) {
  const pid_t child = fork();
  if (child == 0) {
    close(STDIN_FILENO);
    _exit(error_of([] { const ForkServer server; }).starts_with("stdin is not a connection") ? 0
                                                                                             : 1);
  }
  EXPECT_EQ(ending_of(child), "exit 0");
}

}  // namespace
}  // namespace rubato
