#include "c10d/members.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rubato/c10d/c10d_hosts.hpp>
#include <rubato/core/error.hpp>
#include <rubato/core/number.hpp>

#include "c10d/greeting.hpp"

namespace rubato::c10d_hosts_detail {

namespace {

using nlohmann::json;

constexpr std::string_view kNone = "none";
constexpr std::string_view kFinished = "finished ";
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// Throws Error where it is no whole number from `least` on.
std::int64_t whole_of(const json& value, std::int64_t least) {
  const bool fits = value.is_number_integer() && value.get<std::int64_t>() >= least;
  if (!fits) throw Error("a number is missing");
  return value.get<std::int64_t>();
}

Members members_in(std::string_view text) {
  const json object = json::parse(text);
  Members members;
  members.generation = whole_of(object.at("generation"), 1);
  members.first_open = whole_of(object.at("first_open"), 1);
  for (const json& entry : object.at("hosts")) {
    const Member member{
        .host = whole_of(entry.at("host"), 1),
        .standing = parse_standing(entry.at("standing").get_ref<const std::string&>())};
    if (members.contains(member.host)) throw Error("a host is there twice");
    members.hosts.push_back(member);
  }
  if (members.hosts.empty() || members.hosts.size() > static_cast<std::size_t>(kMaxHosts)) {
    throw Error("there is no host, or are too many");
  }
  return members;
}

}  // namespace

bool Members::contains(HostNumber host) const {
  return std::ranges::find(hosts, host, &Member::host) != hosts.end();
}

std::string text_of(const HostStanding& standing) {
  return fmt::format("{}{}", standing.finished ? kFinished : "",
                     standing.steps ? fmt::to_string(*standing.steps) : std::string(kNone));
}

HostStanding parse_standing(std::string_view text) {
  HostStanding standing;
  standing.finished = text.starts_with(kFinished);
  if (standing.finished) text.remove_prefix(kFinished.size());
  if (text != kNone) standing.steps = parse_whole(std::string(text), 0, kMost);
  return standing;
}

std::string signed_text(const Members& members, std::string_view key) {
  json hosts = json::array();
  for (const Member& member : members.hosts) {
    hosts.push_back({{"host", member.host}, {"standing", text_of(member.standing)}});
  }
  const json object{{"generation", members.generation},
                    {"first_open", members.first_open},
                    {"hosts", std::move(hosts)}};
  const std::string text = object.dump();
  return fmt::format("{}\n{}", text, signature_of(key, text));
}

Members parse_members(std::string_view text, std::int64_t generation, std::string_view key) {
  const std::size_t border = text.find('\n');
  const std::string_view list = text.substr(0, border);
  if (border == std::string_view::npos || text.substr(border + 1) != signature_of(key, list)) {
    throw Error("the hosts of the run know another token; accepted: the same on all hosts");
  }
  // Who knows the token is believed; what they have said may still be of another version.
  try {
    Members members = members_in(list);
    if (members.generation == generation) return members;
  } catch (const json::exception&) {
  } catch (const Error&) {
  }
  throw Error(
      "the hosts of the run have left a list of them that cannot be read; accepted: the same "
      "version of rubato on all hosts");
}

}  // namespace rubato::c10d_hosts_detail
