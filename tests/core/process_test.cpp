#include "base/core/system/process.hpp"

#include <array>
#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rubato {
namespace {

using testing::ElementsAre;
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

TEST(KillChild, WaitsUntilItHasEnded) {
  const pid_t child = start_child("/bin/sleep", {"sleep", "100"}, tie_to);
  kill_child(child);
  EXPECT_EQ(kill(child, 0), -1);
}

}  // namespace
}  // namespace rubato
