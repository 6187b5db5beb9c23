#include "facts.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/core/system/cgroup.hpp"
#include "base/core/text/split.hpp"
#include "base/machine/system_files.hpp"

namespace rubato::doctor {

namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// Parses "0-3,8" as 0, 1, 2, 3, 8.
std::vector<int> numbers_of(const std::string& list) {
  constexpr int kMost = 1 << 16;
  std::vector<int> numbers;
  for (const std::string_view range : split_at(list, ',')) {
    std::istringstream ends{std::string(range)};
    int first = 0;
    if (!(ends >> first)) continue;
    int last = first;
    char dash = 0;
    if (ends >> dash && dash == '-') ends >> last;
    for (int i = first; i <= std::min(last, kMost); ++i) numbers.push_back(i);
  }
  return numbers;
}

fs::path folder_of_cpus(const fs::path& root) {
  return root / "sys/devices/system/cpu";
}

// Hardware threads of the same core have the same list of siblings.
int cores(const fs::path& root, const std::vector<int>& online) {
  std::set<std::string> siblings;
  for (const int cpu : online) {
    const std::string list = first_line(folder_of_cpus(root) / fmt::format("cpu{}", cpu) /
                                        "topology/thread_siblings_list");
    if (!list.empty()) siblings.insert(list);
  }
  return static_cast<int>(siblings.size());
}

// Returns the bytes in a line such as "MemAvailable:   123 kB".
std::optional<std::int64_t> memory_line(const fs::path& root, const std::string& name) {
  constexpr std::int64_t kKibi = 1024;
  std::ifstream in(root / "proc/meminfo");
  std::string key;
  std::int64_t kibibytes = 0;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    if (words >> key >> kibibytes && key == name + ":") return kibibytes * kKibi;
  }
  return std::nullopt;
}

Memory memory(const fs::path& root) {
  const CgroupLimits limits = cgroup_limits(root);
  Memory memory{.total = memory_line(root, "MemTotal"),
                .available = memory_line(root, "MemAvailable"),
                .cgroup_limit = limits.memory,
                .cgroup_left = limits.memory_left,
                .address_space = std::nullopt};
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    memory.address_space = static_cast<std::int64_t>(limit.rlim_cur);
  }
  return memory;
}

Disk disk(const fs::path& out) {
  std::error_code error;
  Disk disk{.folder = fs::absolute(out, error)};
  while (!fs::is_directory(disk.folder, error) && disk.folder.has_relative_path()) {
    disk.folder = disk.folder.parent_path();
  }
  disk.writable = access(disk.folder.c_str(), W_OK) == 0;
  const fs::space_info space = fs::space(disk.folder, error);
  if (!error) disk.free = static_cast<std::int64_t>(space.available);
  return disk;
}

// The first number of "0.52 0.58 0.59 1/467 10842": the averages over one, five and fifteen
// minutes.
std::optional<double> load(const fs::path& root) {
  std::ifstream in(root / "proc/loadavg");
  double minute = 0;
  if (in >> minute) return minute;
  return std::nullopt;
}

// The choice in brackets, as in "always [madvise] never".
std::string chosen_in(const std::string& choices) {
  const std::size_t begin = choices.find('[');
  const std::size_t end = choices.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return choices.substr(begin + 1, end - begin - 1);
}

}  // namespace

std::optional<std::int64_t> Memory::usable() const {
  std::optional<std::int64_t> least;
  for (const auto& limit : {available, cgroup_left, address_space}) {
    if (limit && (!least || *limit < *least)) least = limit;
  }
  return least;
}

Facts gather_facts(const fs::path& root, const fs::path& out) {
  const std::vector<int> online = numbers_of(first_line(folder_of_cpus(root) / "online"));
  const fs::path first =
      folder_of_cpus(root) / fmt::format("cpu{}", online.empty() ? 0 : online.front()) / "cpufreq";
  Facts facts{
      .processor = processor_name(root),
      .instruction_set = cpu_instruction_set(),
      .online = static_cast<int>(online.size()),
      .cores = cores(root, online),
      .cpus = cpus(root),
      .threads = 1,
      .load = load(root),
      .memory = memory(root),
      .disk = disk(out),
      .huge_pages = chosen_in(first_line(root / "sys/kernel/mm/transparent_hugepage/enabled")),
      .governor = first_line(first / "scaling_governor"),
      .frequency_driver = first_line(first / "scaling_driver"),
      .coretype = variable("OPENBLAS_CORETYPE"),
      .preloaded = variable("LD_PRELOAD"),
      .training = std::nullopt,
      .no_training = {}};
  facts.threads = facts.cpus.usable();
  return facts;
}

}  // namespace rubato::doctor
