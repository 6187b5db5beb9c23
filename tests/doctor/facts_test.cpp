#include "runs/doctor/facts.hpp"

#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <sys/time.h>

#include "support/temp_folder.hpp"

namespace rubato::doctor {
namespace {

using test::TempFolder;

TEST(Facts, AreReadFromTheMachine) {
  const TempFolder root;
  root.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Fast CPU 9000\n");
  root.write("proc/loadavg", "1.75 0.58 0.59 2/467 10842\n");
  root.write("proc/self/cgroup", "0::/\n");
  root.write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  root.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  root.write("sys/devices/system/cpu/online", "0-2,4\n");
  root.write("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,2\n");
  root.write("sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "1,4\n");
  root.write("sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "0,2\n");
  root.write("sys/devices/system/cpu/cpu4/topology/thread_siblings_list", "1,4\n");
  root.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  root.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate\n");
  const Facts facts = gather_facts(root.path());
  EXPECT_EQ(facts.processor, "Fast CPU 9000");
  EXPECT_EQ(facts.online, 4);
  EXPECT_EQ(facts.cores, 2);
  EXPECT_EQ(facts.cpus.quota, 0.5);
  EXPECT_EQ(facts.threads, 1);
  EXPECT_EQ(facts.load, 1.75);
  EXPECT_EQ(facts.huge_pages, "madvise");
  EXPECT_EQ(facts.governor, "powersave");
  EXPECT_EQ(facts.frequency_driver, "intel_pstate");
}

TEST(Facts, OfAMachineThatSaysNothing) {
  const TempFolder root;
  const Facts facts = gather_facts(root.path());
  EXPECT_EQ(facts.processor, "unknown processor");
  EXPECT_EQ(facts.online, 0);
  EXPECT_EQ(facts.cores, 0);
  EXPECT_GE(facts.threads, 1);
  EXPECT_FALSE(facts.load);
  EXPECT_EQ(facts.huge_pages, "");
  EXPECT_EQ(facts.governor, "");
}

// A handler without SA_RESTART interrupts read().
TEST(OutputOf, IsWholeThoughSignalsInterruptReading) {
  const TempFolder folder;
  const auto program =
      folder.write("program", "#!/bin/sh\nsleep 0.1\necho one\nsleep 0.1\necho two\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  struct sigaction before {};
  struct sigaction ignoring {};
  ignoring.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGALRM, &ignoring, &before), 0);
  const itimerval often{.it_interval = {.tv_sec = 0, .tv_usec = 10'000},
                        .it_value = {.tv_sec = 0, .tv_usec = 10'000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  EXPECT_NO_THROW(EXPECT_EQ(output_of(program, "argument"), "one\ntwo\n"));
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
}

}  // namespace
}  // namespace rubato::doctor
