#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/large_memory.hpp"
#include "base/core/limits.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

constexpr double kGibi = 1 << 30;

TEST(MemoryLimit, IsThePhysicalMemoryOrThatOfTheControlGroup) {
  const test::TempFolder root;
  root.write("proc/meminfo", "MemFree:  512 kB\nMemTotal:  2097152 kB\n");
  MemoryLimit limit = memory_limit(root.path());
  EXPECT_EQ(limit.bytes, 2 * kGibi);
  EXPECT_EQ(limit.what, "physical memory");
  root.write("proc/self/cgroup", "0::/a/b\n");
  root.write("sys/fs/cgroup/a/b/memory.max", "max\n");
  root.write("sys/fs/cgroup/a/memory.max", "1073741824\n");
  limit = memory_limit(root.path());
  EXPECT_EQ(limit.bytes, kGibi);
  EXPECT_EQ(limit.what, "the limit of its control group");
}

TEST(LargeMemory, HasRoomAndAlignmentForEverySize) {
  for (const std::size_t bytes : {0U, 1U, 4'194'303U, 4'194'304U, 10'000'001U, 70'000'000U}) {
    const std::shared_ptr<void> memory = large_memory(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.get()) % 64, 0U) << bytes;
    std::memset(memory.get(), 1, bytes);
  }
}

TEST(LargeMemory, IsRefusedAsMemoryIs) {
  EXPECT_THROW(static_cast<void>(large_memory(std::size_t{1} << 50U)), std::bad_alloc);
}

TEST(MemoryLimit, IsKnownOfThisMachine) {
  EXPECT_GT(memory_limit().bytes, 1e6);
  EXPECT_NE(memory_limit().what, "no limit");
}

TEST(RequireMemory, SaysWhatIsNeededWhatThereIsAndWhatHelps) {
  const MemoryLimit limit{.bytes = 24e9, .what = "physical memory"};
  EXPECT_EQ(error_of([&] { require_memory(24e9, "all needs", "have less", limit); }), "no error");
  EXPECT_EQ(
      error_of([&] { require_memory(512e9, "tree on 64 cores needs", "fewer --cores", limit); }),
      "tree on 64 cores needs 512 GB, and physical memory is 24 GB; fewer --cores");
}

// libtorch's, as it comes.
constexpr const char* kTorch =
    "[enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: you "
    "tried to allocate 400000000 bytes. Error code 12 (Cannot allocate memory)\nException raised "
    "from alloc_cpu at ./c10/core/impl/alloc_cpu.cpp:75 (most recent call first):\nframe #0: ...";

TEST(MemoryFailure, IsKnownByItsTypeOrItsWords) {
  const MemoryLimit limit{.bytes = 1e9, .what = "physical memory"};
  const auto told = [&](const std::exception& error) {
    return memory_failure(error, "fewer threads need less", limit).value_or("none");
  };
  EXPECT_EQ(told(std::bad_alloc()),
            "memory could not be allocated, physical memory is 1 GB; fewer threads need less");
  EXPECT_EQ(
      told(std::runtime_error(kTorch)),
      "400 MB of memory could not be allocated, physical memory is 1 GB; fewer threads need less");
  EXPECT_EQ(told(Error("step 3: std::bad_alloc")), told(std::bad_alloc()));
  EXPECT_EQ(told(std::length_error("vector::_M_default_append")), told(std::bad_alloc()));
  EXPECT_THAT(
      told(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again))),
      AllOf(StartsWith("no further thread could be started: "), HasSubstr("pids.max"),
            EndsWith("; fewer --threads need less")))
      << "there is memory for its stack";
  EXPECT_THAT(
      told(std::runtime_error("pthread_create has failed: Resource temporarily unavailable")),
      StartsWith("no further thread could be started: "))
      << "oneTBB's";
  EXPECT_EQ(told(std::system_error(std::make_error_code(std::errc::io_error))), "none");
  EXPECT_EQ(told(Error("the trace is empty")), "none");
}

TEST(RequireThreads, IsAboutThoseThatCanBeStarted) {
  EXPECT_EQ(error_of([] { require_threads(0); }), "no error");
  EXPECT_EQ(error_of([] { require_threads(3); }), "no error");
  // In a child that is another user, as the limit does not bind root.
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    const rlimit none{.rlim_cur = 1, .rlim_max = 1};
    setrlimit(RLIMIT_NPROC, &none);
    if (getuid() == 0 && setuid(kNobody) != 0) _exit(2);
    const std::string told = error_of([] { require_threads(3); });
    _exit(told.starts_with("no further thread could be started: ulimit -u allows this user 1 "
                           "processes and threads")
              ? 0
              : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(BytesText, HasThreeDigits) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(999), "999 bytes");
  EXPECT_EQ(bytes_text(1536), "1.54 kB");
  EXPECT_EQ(bytes_text(2.5e7), "25 MB");
  EXPECT_EQ(bytes_text(35e12), "35 TB");
}

}  // namespace
}  // namespace rubato
