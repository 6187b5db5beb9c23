// Turns, entries and announcements are texts in the store. A turn is JSON with an HMAC in the next
// line, whose key depends on the token and the run; parse_turn() reports a wrong signature as
// another token, and a signed text that it cannot read as another version of rubato. Parsers check
// every number, and refuse a list that has a host twice. Standings and announcements are lines of
// plain text.

#include "members.hpp"

#include <limits>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/hosts/c10d_hosts.hpp>

#include "base/core/text/json.hpp"
#include "greeting.hpp"

namespace rubato::hosts_detail {

namespace {

using nlohmann::json;

constexpr std::string_view kNone = "none";
constexpr std::string_view kFinished = "finished ";
// Texts for the end of a run.
constexpr const char* kPaused = "paused";
constexpr const char* kComplete = "complete";
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// Throws Error unless it is a whole number of at least `least`.
std::int64_t whole_of(const json& value, std::int64_t least) {
  const bool fits = value.is_number_integer() && value.get<std::int64_t>() >= least;
  if (!fits) throw Error("a number is missing");
  return value.get<std::int64_t>();
}

std::set<HostNumber> numbers_of(const json& list) {
  std::set<HostNumber> numbers;
  for (const json& entry : list) numbers.insert(whole_of(entry, 1));
  return numbers;
}

Cuts cuts_in(const json& list) {
  Cuts cuts;
  for (const json& entry : list) {
    cuts.emplace(whole_of(entry.at(0), 1), entry.at(1).get<std::string>());
  }
  return cuts;
}

Members members_in(const json& object) {
  Members members{.generation = object.at("generation").get<std::int64_t>(),
                  .hosts = {},
                  .first_open = whole_of(object.at("first_open"), 1),
                  .out = numbers_of(object.at("out")),
                  .passed = numbers_of(object.at("passed")),
                  .cut_off = cuts_in(object.at("cut_off"))};
  for (const json& entry : object.at("hosts")) {
    const Member member{
        .host = whole_of(entry.at("host"), 1),
        .standing = parse_standing(entry.at("standing").get_ref<const std::string&>())};
    if (members.contains(member.host)) throw Error("a host is there twice");
    members.hosts.push_back(member);
  }
  if (members.hosts.empty() || members.hosts.size() > static_cast<std::size_t>(kMaxHosts)) {
    throw Error("there are no hosts, or too many");
  }
  return members;
}

// Empty if the text belongs to another generation.
std::optional<Turn> turn_in(std::string_view text, std::int64_t generation) {
  const json object = json::parse(text);
  if (whole_of(object.at("generation"), 1) != generation) return std::nullopt;
  if (!object.contains("end")) return members_in(object);
  const auto& end = object.at("end").get_ref<const std::string&>();
  if (end == kPaused) return EndOfHosts::paused;
  if (end == kComplete) return EndOfHosts::finished;
  return std::nullopt;
}

std::string with_signature(const json& object, std::string_view key) {
  // Bytes that are not UTF-8, which hosts may send each other, are replaced.
  const std::string text = json_text(object);
  return fmt::format("{}\n{}", text, signature_of(key, text));
}

}  // namespace

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

std::string here_text(const Here& here) {
  return json_text(json{{"standing", text_of(here.standing)}, {"cuts", here.cuts}});
}

Here parse_here(std::string_view text) {
  try {
    const json object = json::parse(text);
    return {.standing = parse_standing(object.at("standing").get_ref<const std::string&>()),
            .cuts = cuts_in(object.at("cuts"))};
  } catch (const json::exception&) {
    throw Error("a host has left a text that is not a standing");
  }
}

std::string text_of(const AnnouncedWriter& writer) {
  return fmt::format("{}\n{}", writer.host, writer.folder);
}

std::optional<AnnouncedWriter> parse_writer(std::string_view text) {
  const std::size_t border = text.find('\n');
  if (border == std::string_view::npos) return std::nullopt;
  try {
    return AnnouncedWriter{.host = parse_whole(text.substr(0, border), 1, kMostNumbers),
                           .folder = std::string(text.substr(border + 1))};
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string signing_key(std::string_view token, std::string_view run) {
  return signature_of(token, fmt::format("rubato run {} {}", kProtocol, run));
}

std::string signed_text(const Members& members, std::string_view key) {
  json hosts = json::array();
  for (const Member& member : members.hosts) {
    hosts.push_back({{"host", member.host}, {"standing", text_of(member.standing)}});
  }
  return with_signature({{"generation", members.generation},
                         {"first_open", members.first_open},
                         {"out", members.out},
                         {"passed", members.passed},
                         {"cut_off", members.cut_off},
                         {"hosts", std::move(hosts)}},
                        key);
}

std::string signed_text(EndOfHosts end, std::int64_t generation, std::string_view key) {
  return with_signature(
      {{"generation", generation}, {"end", end == EndOfHosts::paused ? kPaused : kComplete}}, key);
}

Turn parse_turn(std::string_view text, std::int64_t generation, std::string_view key) {
  const std::size_t border = text.find('\n');
  const std::string_view list = text.substr(0, border);
  if (border == std::string_view::npos ||
      !is_same_signature(text.substr(border + 1), signature_of(key, list))) {
    throw Error("the hosts of the run know another token; accepted: the same on all hosts");
  }
  // A host that knows the token is trusted; its text may still be of another version.
  try {
    if (auto turn = turn_in(list, generation)) return *std::move(turn);
  } catch (const json::exception&) {
  } catch (const Error&) {
  }
  throw Error(
      "the hosts of the run have left a list of them that cannot be read; accepted: the same "
      "version of rubato on all hosts");
}

}  // namespace rubato::hosts_detail
