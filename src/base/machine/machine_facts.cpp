#include "machine_facts.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <thread>

#include <sched.h>

#include <rubato/base/machine.hpp>

#include "base/core/limits.hpp"

namespace rubato {

namespace {

// The affinity of the calling thread; before other threads are started, it is the process's.
int allowed_cpus() {
  constexpr int kMostCpus = 1 << 16;
  for (int size = CPU_SETSIZE; size <= kMostCpus; size *= 2) {
    cpu_set_t* const set = CPU_ALLOC(static_cast<std::size_t>(size));
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(size));
    const bool good = sched_getaffinity(0, bytes, set) == 0;
    const int count = good ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (good) return std::max(1, count);
    if (errno != EINVAL) break;  // EINVAL: the set is smaller than the kernel's
  }
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace

int Cpus::usable() const {
  if (!quota || *quota >= allowed) return allowed;
  return std::max(1, static_cast<int>(std::ceil(*quota)));
}

Cpus cpus(const std::filesystem::path& root) {
  return {.allowed = allowed_cpus(), .quota = cgroup_limits(root).cpus};
}

std::string first_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string boot_id(const std::filesystem::path& root) {
  return first_line(root / "proc/sys/kernel/random/boot_id");
}

std::string processor_name(const std::filesystem::path& root) {
  std::ifstream in(root / "proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

}  // namespace rubato
