// Control groups are read from the files below /sys/fs/cgroup. /proc/self/cgroup names the
// process's group in each hierarchy, and every group from there up to the mount may have the
// tightest limit. Version 1 mounts its controllers in folders that are named after them; version 2
// is mounted at the root or, beside version 1, in `unified`. A file that is missing or unreadable
// counts as no limit. Several settings limit the number of threads, so require_threads() does not
// read them but starts the threads and lets them end. Libraries report a lack of memory by
// different exceptions, some of which only their text identifies.

#include "limits.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <latch>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/core/text/text.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

// The groups of one hierarchy, from the process's own up to the root of the mount.
using Groups = std::vector<fs::path>;

// Version 1 expresses "no limit" by the largest number of pages.
constexpr std::int64_t kUnlimited = std::int64_t{1} << 62;

// The whole number at the beginning of a file.
std::optional<std::int64_t> number_of(const fs::path& file) {
  std::ifstream in(file);
  std::int64_t number = 0;
  return in >> number ? std::optional(number) : std::nullopt;
}

// The number in the line of a file that begins with `wanted`: "inactive_file 4096", or "MemTotal:
// 24576000 kB".
std::optional<std::int64_t> number_of(const fs::path& file, std::string_view wanted) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    std::int64_t value = 0;
    if (words >> name >> value && name == wanted) return value;
  }
  return std::nullopt;
}

// In a container the path may be the host's, which is invisible there; the mount is then the
// container's own group.
Groups groups_of(const fs::path& mount, std::string_view path) {
  std::error_code ignored;
  while (path.starts_with('/')) path.remove_prefix(1);
  Groups groups;
  if (!fs::is_directory(mount, ignored)) return groups;
  fs::path relative = fs::path(path).lexically_normal();
  const bool inside = !relative.empty() && *relative.begin() != ".." && relative != ".";
  if (inside && fs::is_directory(mount / relative, ignored)) {
    for (; !relative.empty(); relative = relative.parent_path()) groups.push_back(mount / relative);
  }
  groups.push_back(mount);
  return groups;
}

bool lists(std::string_view controllers, std::string_view wanted) {
  const std::vector<std::string_view> all = split_at(controllers, ',');
  return std::ranges::find(all, wanted) != all.end();
}

template <class T>
void tighten(std::optional<T>& limit, T value) {
  if (!limit || value < *limit) limit = value;
}

// The files of a control group of version 1 or 2 with its memory.
struct MemoryFiles {
  const char* limit;
  const char* used;
  const char* reclaimable;
};
constexpr MemoryFiles kMemory1{"memory.limit_in_bytes", "memory.usage_in_bytes",
                               "total_inactive_file"};
constexpr MemoryFiles kMemory2{"memory.max", "memory.current", "inactive_file"};

void read_memory(CgroupLimits& limits, const Groups& groups, const MemoryFiles& files) {
  for (const fs::path& group : groups) {
    const auto limit = number_of(group / files.limit);
    if (!limit || *limit >= kUnlimited) continue;
    const std::int64_t used = number_of(group / files.used).value_or(0) -
                              number_of(group / "memory.stat", files.reclaimable).value_or(0);
    tighten(limits.memory, *limit);
    tighten(limits.memory_left,
            std::max<std::int64_t>(0, *limit - std::max<std::int64_t>(0, used)));
  }
}

void limit_cpus(CgroupLimits& limits, std::int64_t quota, std::int64_t period) {
  if (quota <= 0 || period <= 0) return;
  tighten(limits.cpus, static_cast<double>(quota) / static_cast<double>(period));
}

void read_version_2(CgroupLimits& limits, const Groups& groups) {
  for (const fs::path& group : groups) {
    std::ifstream max(group / "cpu.max");
    std::int64_t quota = 0;
    std::int64_t period = 0;
    if (max >> quota >> period) limit_cpus(limits, quota, period);
  }
  read_memory(limits, groups, kMemory2);
}

void read_version_1_cpu(CgroupLimits& limits, const Groups& groups) {
  for (const fs::path& group : groups) {
    limit_cpus(limits, number_of(group / "cpu.cfs_quota_us").value_or(0),
               number_of(group / "cpu.cfs_period_us").value_or(0));
  }
}

}  // namespace

CgroupLimits cgroup_limits(const fs::path& root) {
  const fs::path mounts = root / "sys/fs/cgroup";
  CgroupLimits limits;
  std::ifstream lines(root / "proc/self/cgroup");
  // Each line has the process's group in a hierarchy: "number:controllers:path".
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      // Version 2 is mounted alone, or beside version 1.
      read_version_2(limits, groups_of(mounts, path));
      read_version_2(limits, groups_of(mounts / "unified", path));
      continue;
    }
    for (const std::string& folder :
         {controllers, std::string("cpu"), std::string("cpu,cpuacct"), std::string("memory")}) {
      const Groups groups = groups_of(mounts / folder, path);
      if (lists(controllers, "cpu") && folder != "memory") read_version_1_cpu(limits, groups);
      if (lists(controllers, "memory") && !folder.starts_with("cpu")) {
        read_memory(limits, groups, kMemory1);
      }
    }
  }
  return limits;
}

namespace {

std::optional<double> physical_memory(const fs::path& root) {
  constexpr double kKibi = 1024;
  const auto kibibytes = number_of(root / "proc/meminfo", "MemTotal:");
  return kibibytes ? std::optional(static_cast<double>(*kibibytes) * kKibi) : std::nullopt;
}

// The part of a limit that is left: `used` is the number of the field of statm, from 1, that counts
// the pages in use.
std::optional<double> left_of(decltype(RLIMIT_AS) resource, const fs::path& root, int used) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  std::ifstream in(root / "proc/self/statm");
  double pages = 0;
  for (int i = 0; i < used && in >> pages; ++i) {
  }
  const double bytes = in ? pages * static_cast<double>(sysconf(_SC_PAGESIZE)) : 0;
  return std::max(0.0, static_cast<double>(limit.rlim_cur) - bytes);
}

// True if a thread could not be started. The system gives the same error code for lack of memory
// for the stack and for a limit of threads.
bool is_thread_refused(const std::exception& error) {
  const auto* const refused = dynamic_cast<const std::system_error*>(&error);
  if (refused != nullptr) return refused->code() == std::errc::resource_unavailable_try_again;
  // oneTBB throws its error without the code.
  return std::string_view(error.what()).find("pthread_create has failed") != std::string_view::npos;
}

// True if the stack of a thread can be mapped.
bool can_have_stack() {
  constexpr std::size_t kStack = std::size_t{8} << 20U;
  void* const stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return stack != MAP_FAILED && munmap(stack, kStack) == 0;
}

std::string no_further_thread() {
  rlimit limit{};
  const bool limited = getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return fmt::format(
      "no further thread could be started: {} (pids.max); fewer --threads need less",
      limited ? fmt::format("ulimit -u allows this user {} processes and threads, and the control "
                            "group may allow fewer",
                            limit.rlim_cur)
              : "the system or the control group allows no more");
}

}  // namespace

MemoryLimit memory_limit(const fs::path& root) {
  MemoryLimit lowest{.bytes = 1e300, .what = "no limit"};
  const auto consider = [&](const std::optional<double>& bytes, const char* what,
                            bool of_addresses = false) {
    if (bytes && *bytes < lowest.bytes) {
      lowest = {.bytes = *bytes, .what = what, .of_addresses = of_addresses};
    }
  };
  consider(physical_memory(root), "physical memory");
  consider(cgroup_limits(root).memory, "the limit of its control group");
  // The first counts all that is mapped; the second private memory, data and stack, but no mapped
  // files.
  consider(left_of(RLIMIT_AS, root, 1), "what ulimit -v leaves", true);
  consider(left_of(RLIMIT_DATA, root, 6), "what ulimit -d leaves");
  return lowest;
}

std::string bytes_text(double bytes) {
  struct Unit {
    double size;
    const char* name;
  };
  constexpr std::array<Unit, 5> kUnits{
      {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "bytes"}}};
  for (const Unit& unit : kUnits) {
    if (bytes < unit.size && unit.size > 1) continue;
    return fmt::format("{:.3g} {}", bytes / unit.size, unit.name);
  }
  return {};
}

void require_memory(double bytes, std::string_view needs, std::string_view help,
                    const MemoryLimit& limit) {
  if (bytes <= limit.bytes) return;
  throw MemoryError(fmt::format("{} {}, and {} is {}; {}", needs, bytes_text(bytes), limit.what,
                                bytes_text(limit.bytes), help));
}

void require_threads(int count) {
  // The threads only wait, so a small stack is enough.
  constexpr std::size_t kStack = std::size_t{256} << 10U;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  std::latch end(1);
  std::vector<pthread_t> threads(static_cast<std::size_t>(std::max(count, 0)));
  std::size_t started = 0;
  const auto wait = [](void* latch) -> void* {
    static_cast<std::latch*>(latch)->wait();
    return nullptr;
  };
  while (started < threads.size() &&
         pthread_create(&threads[started], &attributes, wait, &end) == 0) {
    ++started;
  }
  end.count_down();
  for (std::size_t i = 0; i < started; ++i) pthread_join(threads[i], nullptr);
  pthread_attr_destroy(&attributes);
  if (started == threads.size()) return;
  throw MemoryError(can_have_stack()
                        ? no_further_thread()
                        : fmt::format("memory for {} threads could not be allocated", count));
}

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (dynamic_cast<const std::length_error*>(&error) != nullptr) return true;
  if (is_thread_refused(error)) return true;
  const std::string_view text = error.what();
  // libtorch: "DefaultCPUAllocator: can't allocate memory: you tried to allocate 400 bytes. Error
  // code 12".
  return text.find("std::bad_alloc") != std::string_view::npos ||
         text.find("can't allocate memory") != std::string_view::npos;
}

std::optional<std::string> memory_failure(const std::exception& error, std::string_view help,
                                          const MemoryLimit& limit) {
  constexpr std::string_view kAmount = "you tried to allocate ";
  const std::string_view text = error.what();
  if (!is_out_of_memory(error)) return std::nullopt;
  if (is_thread_refused(error) && can_have_stack()) {
    return no_further_thread();
  }
  std::string asked = "memory";
  if (const std::size_t place = text.find(kAmount); place != std::string_view::npos) {
    const double bytes = std::strtod(text.data() + place + kAmount.size(), nullptr);
    asked = fmt::format("{} of memory", bytes_text(bytes));
  }
  return fmt::format("{} could not be allocated, {} is {}; {}", asked, limit.what,
                     bytes_text(limit.bytes), help);
}

}  // namespace rubato
