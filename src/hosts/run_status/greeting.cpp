// A greeting is JSON that may come from another version of rubato: parse_greeting() checks its
// length and then the version, and reads the other members only if that is its own. Every host
// compares all greetings with its own, so each one finds a difference without a further message.
// Loopback interfaces are refused as soon as the hosts are on several machines. proof_of() signs a
// list of the digests of all greetings in the order of ranks.

#include "greeting.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/core/text/json.hpp"
#include "base/core/throw_error.hpp"
#include "base/machine/machine_facts.hpp"
#include "base/state/sha256.hpp"

namespace rubato::hosts_detail {

namespace {

using nlohmann::json;

std::string machine_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

// Replaces control characters: a text from elsewhere may be printed on a terminal.
std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char byte) { return byte < 0x20 || byte == 0x7f; }, '?');
  return text;
}

// Calls `visit` with the name and the value of each member that is one JSON value.
template <class Greeting, class Visit>
void visit_members(Greeting& greeting, const Visit& visit) {
  visit("protocol", greeting.protocol);
  visit("count", greeting.count);
  visit("weight", greeting.weight);
  visit("machine", greeting.machine);
  visit("machine_id", greeting.machine_id);
  visit("interface", greeting.interface);
  visit("door", greeting.probe_address);
  visit("nonce", greeting.nonce);
}

// These throw json::exception if the value has another type.
void read(const json& value, std::string& text) {
  text = printable(value.get_ref<const std::string&>());
}
void read(const json& value, int& whole) {
  // A number that does not fit becomes 0, which is never valid here.
  const auto number = value.get_ref<const json::number_unsigned_t&>();
  whole = std::in_range<int>(number) ? static_cast<int>(number) : 0;
}
void read(const json& value, double& real) {
  real = value.get_ref<const json::number_float_t&>();
}

// Returns difference_between() the hosts' texts for a message. The texts themselves stay as they
// are, because they are compared.
std::string printable_difference(const Greeting& own, const Greeting& other) {
  return printable(difference_between(own.equal, other.equal));
}

}  // namespace

bool is_loopback(std::string_view interface) {
  return interface.starts_with("127.") || interface == "localhost" || interface == "lo" ||
         interface == "::1";
}

std::string greeting_text(const Greeting& greeting) {
  json equal = json::array();
  for (const auto& [name, text] : greeting.equal) equal.push_back(json::array({name, text}));
  json object{{"protocol", greeting.protocol},     {"count", greeting.count},
              {"weight", greeting.weight},         {"machine", greeting.machine},
              {"machine_id", greeting.machine_id}, {"interface", greeting.interface},
              {"door", greeting.probe_address},    {"nonce", greeting.nonce},
              {"equal", std::move(equal)}};
  if (greeting.brings) object["brings"] = *greeting.brings;
  std::string text = json_text(object);
  if (text.size() <= kMaxGreetingBytes) return text;
  throw_error("the texts that have to be equal on all hosts take {} bytes; accepted: up to {}",
              text.size(), kMaxGreetingBytes);
}

Greeting parse_greeting(std::string_view text, int rank) {
  const auto refuse = [rank](std::string_view why) {
    throw_error("host {} {}; accepted: the same version of rubato on all hosts", rank, why);
  };
  if (text.size() > kMaxGreetingBytes) refuse("sends too long a greeting");
  Greeting greeting;
  try {
    const json object = json::parse(text);
    read(object.at("protocol"), greeting.protocol);
    if (greeting.protocol == kProtocol) {
      visit_members(greeting, [&](const char* name, auto& value) { read(object.at(name), value); });
      if (object.contains("brings")) {
        greeting.brings = object.at("brings").get_ref<const json::number_unsigned_t&>();
      }
      for (const auto& entry : object.at("equal")) {
        greeting.equal.push_back({.name = entry.at(0).get_ref<const std::string&>(),
                                  .text = entry.at(1).get_ref<const std::string&>()});
      }
    }
  } catch (const json::exception&) {
    refuse("has left a text that is not a greeting");
  }
  if (greeting.protocol != kProtocol) {
    refuse(fmt::format("speaks version {} of the protocol, this host {}", greeting.protocol,
                       kProtocol));
  }
  if (!(greeting.weight > 0) || !std::isfinite(greeting.weight)) {
    throw_error("host {} has the weight {}; accepted: a number above 0", rank, greeting.weight);
  }
  return greeting;
}

Greeting greeting_of(const C10dOptions& meeting) {
  return {.count = meeting.count,
          .weight = meeting.weight,
          .machine = machine_name(),
          .machine_id = boot_id(),
          .interface = meeting.interface,
          .nonce = new_nonce(),
          .equal = meeting.equal};
}

std::string proof_of(std::string_view token, int rank, std::span<const std::string> greetings) {
  // The lines are digests, so that no two lists of greetings give the same bytes.
  std::string read = fmt::format("rubato hosts {} {} of {}\n", kProtocol, rank, greetings.size());
  for (const std::string& greeting : greetings) read += Sha256::hex_of(greeting) + "\n";
  return signature_of(token, read);
}

void require_same_count(const Greeting& own, const Greeting& other, int rank) {
  if (other.count == own.count) return;
  throw_error("host {} is one of {} hosts, this host of {}; accepted: the same on all hosts", rank,
              other.count, own.count);
}

void require_compatible(std::span<const Greeting> greetings, int rank) {
  const std::vector<std::string> names = names_of(greetings);
  const Greeting& own = greetings[static_cast<std::size_t>(rank)];
  for (std::size_t host = 0; host < greetings.size(); ++host) {
    const Greeting& other = greetings[host];
    const std::string difference = printable_difference(own, other);
    if (!difference.empty()) {
      throw_error("{} has {}; accepted: the same on all hosts", names[host], difference);
    }
  }
  // All hosts check alike, so that none waits for another.
  const bool one_machine = std::ranges::all_of(
      greetings, [&](const Greeting& other) { return other.machine_id == own.machine_id; });
  for (std::size_t host = 0; host < greetings.size() && !one_machine; ++host) {
    if (!is_loopback(greetings[host].interface)) continue;
    throw_error(
        "{} can be reached at {} only, which no other machine reaches; accepted: the address or "
        "the network interface at which the others reach it",
        names[host], greetings[host].interface);
  }
}

std::string objection_to(const Greeting& own, const Greeting& other) {
  std::string difference = printable_difference(own, other);
  if (!difference.empty() || own.machine_id == other.machine_id) return difference;
  for (const Greeting* const host : {&own, &other}) {
    if (!is_loopback(host->interface)) continue;
    return fmt::format("the interface {} of the machine {}, which no other machine reaches",
                       host->interface, host->machine);
  }
  return {};
}

std::vector<std::string> names_of(std::span<const Greeting> greetings) {
  std::vector<std::int64_t> ranks(greetings.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return names_of(greetings, ranks);
}

std::vector<std::string> names_of(std::span<const Greeting> greetings,
                                  std::span<const std::int64_t> numbers) {
  const bool one_machine = std::ranges::all_of(greetings, [&](const Greeting& greeting) {
    return greeting.machine == greetings.front().machine;
  });
  std::vector<std::string> names;
  for (std::size_t host = 0; host < greetings.size(); ++host) {
    names.push_back(one_machine
                        ? fmt::format("host {}", numbers[host])
                        : fmt::format("host {} ({})", numbers[host], greetings[host].machine));
  }
  return names;
}

}  // namespace rubato::hosts_detail
