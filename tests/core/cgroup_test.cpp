#include <cstdint>

#include <gmock/gmock.h>

#include "base/core/limits.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::TempFolder;

constexpr std::int64_t kMiB = 1 << 20;

TEST(Cgroup, ReadsTheTightestOfVersion2) {
  const TempFolder root;
  root.write("proc/self/cgroup", "0::/user/job\n");
  root.write("sys/fs/cgroup/user/job/cpu.max", "max 100000\n");
  root.write("sys/fs/cgroup/user/cpu.max", "250000 100000\n");
  root.write("sys/fs/cgroup/cpu.max", "400000 100000\n");
  root.write("sys/fs/cgroup/user/job/memory.max", "104857600\n");
  root.write("sys/fs/cgroup/user/job/memory.current", "41943040\n");
  root.write("sys/fs/cgroup/user/job/memory.stat", "anon 1\ninactive_file 10485760\n");
  root.write("sys/fs/cgroup/user/memory.max", "max\n");
  const CgroupLimits limits = cgroup_limits(root.path());
  EXPECT_EQ(limits.cpus, 2.5);
  EXPECT_EQ(limits.memory, 100 * kMiB);
  EXPECT_EQ(limits.memory_left, 70 * kMiB);
}

TEST(Cgroup, ReadsVersion1) {
  const TempFolder root;
  root.write("proc/self/cgroup", "5:memory:/job\n3:cpu,cpuacct:/job\n1:name=systemd:/\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "209715200\n");
  root.write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "10485760\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const CgroupLimits limits = cgroup_limits(root.path());
  EXPECT_EQ(limits.cpus, 0.5);
  EXPECT_EQ(limits.memory, 200 * kMiB);
  EXPECT_EQ(limits.memory_left, 190 * kMiB);
}

TEST(Cgroup, ReadsVersion1AndVersion2SideBySide) {
  const TempFolder root;
  root.write("proc/self/cgroup", "4:memory:/job\n1:cpu:/\n0::/\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/unified/memory.max", "104857600\n");
  const CgroupLimits limits = cgroup_limits(root.path());
  EXPECT_EQ(limits.cpus, 3);
  EXPECT_EQ(limits.memory, 100 * kMiB);
}

TEST(Cgroup, ReadsTheContainersOwnGroupWhereItsPathIsTheHosts) {
  const TempFolder root;
  root.write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  root.write("sys/fs/cgroup/memory.max", "104857600\n");
  for (const char* group : {"0::/docker/0123abc\n", "0::/../../elsewhere\n"}) {
    root.write("proc/self/cgroup", group);
    EXPECT_EQ(cgroup_limits(root.path()).cpus, 1.5);
    EXPECT_EQ(cgroup_limits(root.path()).memory, 100 * kMiB);
  }
}

TEST(Cgroup, IsWithoutLimitsWhereThereAreNone) {
  const TempFolder root;
  const auto expect_none = [&] {
    const CgroupLimits limits = cgroup_limits(root.path());
    EXPECT_FALSE(limits.cpus);
    EXPECT_FALSE(limits.memory);
    EXPECT_FALSE(limits.memory_left);
  };
  expect_none();
  root.write("proc/self/cgroup", "nonsense\n0::/\n");
  expect_none();
  root.write("sys/fs/cgroup/cpu.max", "max 100000\n");
  root.write("sys/fs/cgroup/memory.max", "max\n");
  expect_none();
  root.write("sys/fs/cgroup/cpu.max", "100 0\n");
  root.write("sys/fs/cgroup/memory.max", "plenty\n");
  expect_none();
  root.write("proc/self/cgroup", "9:memory:/\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  expect_none();
}

}  // namespace
}  // namespace rubato
