#include <gtest/gtest.h>

#include <rubato/base/machine.hpp>

#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::TempFolder;

TEST(Cpus, ThreadsUseTheQuota) {
  EXPECT_EQ((Cpus{.allowed = 8, .quota = std::nullopt}).usable(), 8);
  EXPECT_EQ((Cpus{.allowed = 8, .quota = 2.0}).usable(), 2);
  EXPECT_EQ((Cpus{.allowed = 8, .quota = 2.5}).usable(), 3);
  EXPECT_EQ((Cpus{.allowed = 8, .quota = 0.1}).usable(), 1);
  EXPECT_EQ((Cpus{.allowed = 2, .quota = 16.0}).usable(), 2);
}

TEST(Cpus, AreThoseOfTheAffinity) {
  const TempFolder root;
  root.write("proc/self/cgroup", "0::/\n");
  root.write("sys/fs/cgroup/cpu.max", "10000 100000\n");
  EXPECT_GE(cpus(root.path()).allowed, 1);
  EXPECT_EQ(cpus(root.path()).quota, 0.1);
  EXPECT_EQ(cpus(root.path()).usable(), 1);
}

}  // namespace
}  // namespace rubato
