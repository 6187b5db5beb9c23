#include "story.hpp"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rubato::c10d_hosts_detail {

namespace {

std::vector<HostNumber> those_not_in(const Members& others, const Members& members) {
  std::vector<HostNumber> numbers;
  for (const Member& member : members.hosts) {
    if (!others.contains(member.host)) numbers.push_back(member.host);
  }
  return numbers;
}

}  // namespace

std::string story_of(const Members& before, const Members& now, std::string_view reason,
                     std::chrono::duration<double> took) {
  std::string story = fmt::format("group {}: {} host{}", now.generation, now.hosts.size(),
                                  now.hosts.size() == 1 ? "" : "s");
  const auto gone = those_not_in(now, before);
  const auto come = those_not_in(before, now);
  if (!gone.empty()) story += fmt::format("; gone: {}", fmt::join(gone, ", "));
  if (!come.empty()) story += fmt::format("; new: {}", fmt::join(come, ", "));
  if (!reason.empty()) story += fmt::format("; {}", reason);
  return story + fmt::format("; formed in {:.1f} s", took.count());
}

}  // namespace rubato::c10d_hosts_detail
