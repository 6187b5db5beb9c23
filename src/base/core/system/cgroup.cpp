#include "cgroup.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/core/text/split.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

// The groups of one hierarchy, from the process's own up to the root of the mount.
using Groups = std::vector<fs::path>;

// Version 1 expresses "no limit" by the largest number of pages.
constexpr std::int64_t kUnlimited = std::int64_t{1} << 62;

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// The whole number at the beginning of `text`.
std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

std::optional<std::int64_t> number_of(const fs::path& file) {
  return number_in(text_of(file));
}

// The value of `wanted` in lines "name number"; 0 if it is missing.
std::int64_t value_in(const std::string& text, std::string_view wanted) {
  std::istringstream lines(text);
  std::string name;
  std::int64_t value = 0;
  while (lines >> name >> value) {
    if (name == wanted) return value;
  }
  return 0;
}

// The process's group in a hierarchy, from a line "number:controllers:path" of /proc/self/cgroup.
struct Membership {
  std::string controllers;
  std::string path;
};

std::vector<Membership> memberships(const fs::path& root) {
  std::istringstream lines(text_of(root / "proc/self/cgroup"));
  std::vector<Membership> found;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    found.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return found;
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

void limit_memory(CgroupLimits& limits, std::int64_t limit, std::int64_t used,
                  std::int64_t reclaimable) {
  tighten(limits.memory, limit);
  tighten(limits.memory_left,
          std::max<std::int64_t>(0, limit - std::max<std::int64_t>(0, used - reclaimable)));
}

void read_version_2(CgroupLimits& limits, const Groups& groups) {
  for (const fs::path& group : groups) {
    std::istringstream max(text_of(group / "cpu.max"));
    std::string quota;
    double period = 0;
    if (max >> quota >> period && period > 0) {
      if (const auto microseconds = number_in(quota)) {
        tighten(limits.cpus, static_cast<double>(*microseconds) / period);
      }
    }
    if (const auto limit = number_of(group / "memory.max")) {
      limit_memory(limits, *limit, number_of(group / "memory.current").value_or(0),
                   value_in(text_of(group / "memory.stat"), "inactive_file"));
    }
  }
}

void read_version_1_cpu(CgroupLimits& limits, const Groups& groups) {
  for (const fs::path& group : groups) {
    const auto quota = number_of(group / "cpu.cfs_quota_us");
    const auto period = number_of(group / "cpu.cfs_period_us");
    if (quota && period && *quota > 0 && *period > 0) {
      tighten(limits.cpus, static_cast<double>(*quota) / static_cast<double>(*period));
    }
  }
}

void read_version_1_memory(CgroupLimits& limits, const Groups& groups) {
  for (const fs::path& group : groups) {
    const auto limit = number_of(group / "memory.limit_in_bytes");
    if (!limit || *limit >= kUnlimited) continue;
    limit_memory(limits, *limit, number_of(group / "memory.usage_in_bytes").value_or(0),
                 value_in(text_of(group / "memory.stat"), "total_inactive_file"));
  }
}

}  // namespace

CgroupLimits cgroup_limits(const fs::path& root) {
  const fs::path mounts = root / "sys/fs/cgroup";
  CgroupLimits limits;
  for (const auto& [controllers, path] : memberships(root)) {
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
        read_version_1_memory(limits, groups);
      }
    }
  }
  return limits;
}

}  // namespace rubato
