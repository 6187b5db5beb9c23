#include "base/core/process.hpp"

#include <array>
#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/matchers.hpp"

namespace rubato {
namespace {

using testing::StrEq;

// How a child ends, as waitpid() has it.
int end_of(pid_t child) {
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST(ExecPointers, EndWithANullPointer) {
  const std::vector<std::string> texts{"sleep", "100"};
  EXPECT_THAT(exec_pointers(texts), ElementsAre(StrEq("sleep"), StrEq("100"), nullptr));
}

TEST(StartChild, RunsTheProgramWithItsArguments) {
  const int status = end_of(start_child("/bin/sh", {"sh", "-c", "exit 3"}, [](pid_t) {}));
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

TEST(StartChild, EndsAsAShellDoesWithoutTheProgram) {
  const int status = end_of(start_child("/no/such/program", {"program"}, [](pid_t) {}));
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), kCannotStart);
}

TEST(StartChild, PreparesInTheChild) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t here = getpid();
  const pid_t child = start_child("/bin/true", {"true"}, [&](pid_t parent) {
    const bool well = parent == here && getpid() != here;
    static_cast<void>(!write(ends[1], well ? "y" : "n", 1));
  });
  close(ends[1]);
  char answer = '-';
  EXPECT_EQ(read(ends[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  close(ends[0]);
  EXPECT_EQ(end_of(child), 0);
}

TEST(TieTo, PutsTheChildIntoAGroupOfItsOwn) {
  const pid_t child = start_child("/bin/false", {"false"}, [](pid_t parent) {
    tie_to(parent);
    _exit(getpgrp() == getpid() ? 0 : 1);
  });
  EXPECT_EQ(end_of(child), 0);
}

TEST(TieTo, EndsTheChildOfAnotherParent) {
  const pid_t child = start_child("/bin/true", {"true"}, [](pid_t parent) { tie_to(parent + 1); });
  EXPECT_EQ(WEXITSTATUS(end_of(child)), kCannotStart);
}

// The limit is lowered in a child alone.
TEST(RunWithEnoughStack, HasMoreThanTheLimit) {
  for (const rlim_t stack : {rlim_t{256} << 10U, rlim_t{8} << 20U}) {
    const pid_t child = fork();
    if (child == 0) {
      const rlimit limit{.rlim_cur = stack, .rlim_max = stack};
      setrlimit(RLIMIT_STACK, &limit);
      _exit(run_with_enough_stack([] {
        constexpr std::size_t kMuch = std::size_t{1} << 20U;
        std::array<volatile char, kMuch> touched;
        for (std::size_t i = 0; i < kMuch; i += 1024) touched[i] = 1;
        return touched[1024] + 1;
      }));
    }
    const int status = end_of(child);
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 2);
  }
}

// The thread stands for the whole process.
TEST(RunWithEnoughStack, GetsTheSignalsOfTheProcess) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{.rlim_cur = 256 << 10, .rlim_max = 256 << 10};
    setrlimit(RLIMIT_STACK, &limit);
    _exit(run_with_enough_stack([] {
      sigset_t set;
      sigemptyset(&set);
      sigaddset(&set, SIGTERM);
      pthread_sigmask(SIG_BLOCK, &set, nullptr);
      kill(getpid(), SIGTERM);
      int signal = 0;
      sigwait(&set, &signal);
      return signal == SIGTERM ? 0 : 1;
    }));
  }
  EXPECT_EQ(end_of(child), 0);
}

TEST(KillChild, WaitsUntilItHasEnded) {
  const pid_t child = start_child("/bin/sleep", {"sleep", "100"}, tie_to);
  kill_child(child);
  EXPECT_EQ(kill(child, 0), -1);
}

}  // namespace
}  // namespace rubato
