// Reader copies what is in the store into a RunReading, and status_of() interprets that without any
// input or output, so the two can be used apart. A host counts as alive only if its sign of life
// changes while it is watched: look_for_life() polls the signs until every host has moved, is known
// to be gone or refused, or has had its time, which is shorter for a host that by the clocks has
// been silent for long. Reader asks by StoreClient and changes no key; neither needs libtorch,
// which `rubato hosts` does not load.

#include "run_status.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/hosts/c10d_hosts.hpp>

#include "base/core/throw_error.hpp"
#include "greeting.hpp"
#include "hosts/rendezvous/store_client.hpp"
#include "liveness.hpp"
#include "members.hpp"

namespace rubato::hosts_detail {

namespace {

template <class Read>
auto readable(const Read& read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<Greeting> greeting_in(const HostReading& host, HostNumber number) {
  return readable([&] { return parse_greeting(host.greeting, static_cast<int>(number)); });
}

HostState state_of(const HostReading& host) {
  if (!host.refusal.empty()) return HostState::refused;
  if (host.life == kLeft) return HostState::left;
  if (host.process_state == ProcessState::ended) return HostState::ended;
  return host.moves ? HostState::alive : HostState::silent;
}

HostStatus host_status(HostNumber number, const HostReading& reading, std::int64_t now) {
  HostStatus host{.host = number, .state = state_of(reading), .refusal = reading.refusal};
  if (const auto greeting = greeting_in(reading, number)) {
    host.machine = greeting->machine;
    host.interface = greeting->interface;
    host.weight = greeting->weight;
  }
  host.process = id_of_process(reading.process);
  if (const auto progress = parse_progress(reading.progress)) {
    host.steps = progress->steps;
    host.here_for = std::max<std::int64_t>(now - progress->came, 0);
    if (host.state == HostState::silent) {
      host.silent_for = std::max<std::int64_t>(now - progress->reported, 0);
    }
  }
  return host;
}

bool has_gone(const HostStatus& host) {
  return host.state == HostState::left || host.state == HostState::ended;
}

// Options on which all hosts agree, from the first greeting that can be read.
void take_options(RunStatus& status, const RunReading& reading) {
  for (const auto& [number, host] : reading.hosts) {
    const auto greeting = greeting_in(host, number);
    if (!greeting) continue;
    const auto whole_of = [&](std::string_view name) -> std::optional<std::int64_t> {
      const auto found = std::ranges::find(greeting->equal, name, &NamedText::name);
      if (found == greeting->equal.end()) return std::nullopt;
      return readable([&] { return parse_whole(found->text, 0, kMostNumbers); });
    };
    status.cores = whole_of("--cores");
    status.first = whole_of("--hosts");
    status.least = whole_of("--min-hosts");
    status.most = whole_of("--max-hosts");
    return;
  }
}

std::vector<HostStatus> hosts_of(const RunReading& reading) {
  std::vector<HostStatus> hosts;
  const auto status_of_host = [&](HostNumber number) {
    const auto found = reading.hosts.find(number);
    return host_status(number, found == reading.hosts.end() ? HostReading{} : found->second,
                       reading.now);
  };
  for (const Member& member : reading.newest.hosts) {
    HostStatus host = status_of_host(member.host);
    host.rank = hosts.size();
    // The steps that the host came with, if it has not told any since.
    if (!host.steps) host.steps = member.standing.steps;
    hosts.push_back(std::move(host));
  }
  for (const auto& [number, host] : reading.hosts) {
    if (reading.newest.contains(number)) continue;
    HostStatus newcomer = status_of_host(number);
    if (!has_gone(newcomer)) hosts.push_back(std::move(newcomer));
  }
  return hosts;
}

RunState state_of(const RunReading& reading, RunStatus& status) {
  if (reading.end) {
    return *reading.end == EndOfHosts::finished ? RunState::complete : RunState::stopped;
  }
  const auto is_alive = [](const HostStatus& host) { return host.state == HostState::alive; };
  const bool has_begun = reading.newest.generation > 0;
  // Newcomers cannot continue a run whose state is lost.
  const bool has_hosts = std::ranges::any_of(status.hosts, [&](const HostStatus& host) {
    return is_alive(host) && (!has_begun || host.rank);
  });
  if (!has_hosts) return RunState::deserted;
  const auto wanted =
      static_cast<std::size_t>((has_begun ? status.least : status.first).value_or(1));
  const bool all_train = std::ranges::all_of(reading.newest.hosts, [&](const Member& member) {
    const auto found = reading.hosts.find(member.host);
    return found != reading.hosts.end() && !found->second.is_here &&
           state_of(found->second) == HostState::alive;
  });
  if (has_begun && all_train) return RunState::trains;
  if (has_begun && status.there >= wanted) return RunState::regroups;
  status.wanted = wanted;
  return RunState::waits;
}

}  // namespace

RunStatus status_of(const RunReading& reading) {
  RunStatus status{.generation = reading.newest.generation, .hosts = hosts_of(reading)};
  take_options(status, reading);
  status.writer = parse_writer(reading.writer);
  for (const HostStatus& host : status.hosts) {
    if (host.state == HostState::alive) ++status.there;
    status.steps = std::max(status.steps, host.steps);
  }
  status.state = state_of(reading, status);
  return status;
}

namespace {

using rendezvous_detail::Refused;
using rendezvous_detail::StoreClient;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Time limit for the store to answer.
constexpr milliseconds kPatience{3000};
// Interval between two looks at signs of life.
constexpr milliseconds kLook{50};
// Time for which signs of life are awaited from a host that, by the clocks, has been silent for
// kHeartbeatTimeout.
constexpr milliseconds kSecondLook{4 * kHeartbeatInterval};

// Reads what is in the store of a run.
class Reader {
 public:
  explicit Reader(const C10dOptions& meeting)
      : run_(meeting.run),
        token_(meeting.token),
        name_(fmt::format("rendezvous {}:{}", meeting.address, meeting.port)) {
    try {
      client_.emplace(StoreClient::Options{.host = meeting.address,
                                           .port = meeting.port,
                                           .token = meeting.token,
                                           .timeout = kPatience});
    } catch (const Refused& refused) {
      throw_error("cannot reach the {}: {}", name_, refused.what());
    } catch (const Error& error) {
      throw HostLost(
          fmt::format("cannot reach the {}: {}; accepted: HOST:PORT/NAME at a `rubato rendezvous`",
                      name_, error.what()));
    }
  }

  [[nodiscard]] RunReading reading() {
    const auto run = find(kRunKey);
    if (!run) throw Error(absence());
    keys_ = RunKeys(*run);
    read_turns();
    reading_.writer = text_of(keys_.writer());
    for (const Member& member : reading_.newest.hosts) read_host(member.host);
    const HostNumber arrivals = parse_whole(find(keys_.arrivals()).value_or("0"), 0, kMostNumbers);
    // The newest kMaxHosts hosts, if more have come since.
    const HostNumber first = std::max(reading_.newest.first_open, arrivals - kMaxHosts + 1);
    for (HostNumber host = first; host <= arrivals; ++host) {
      if (!reading_.newest.contains(host) && !reading_.newest.out.contains(host)) read_host(host);
    }
    if (!reading_.end) look_for_life();
    reading_.now = seconds_since_1970();
    return std::move(reading_);
  }

 private:
  [[nodiscard]] std::optional<std::string> get(const std::string& key) {
    try {
      return client_->get(key);
    } catch (const Error& error) {
      throw HostLost(fmt::format("the {} does not answer: {}", name_, error.what()));
    }
  }
  [[nodiscard]] std::optional<std::string> find(const std::string& key) {
    return get(fmt::format("{}/{}", run_prefix(run_), key));
  }
  [[nodiscard]] std::string text_of(const std::string& key) { return find(key).value_or(""); }

  [[nodiscard]] std::string absence() {
    // Hosts that do not come and go put their greetings here (meeting.hpp).
    if (get(fmt::format("rubato/{}/greeting/0", run_))) {
      return fmt::format(
          "the hosts of the run '{}' at the {} do not come and go; accepted: a run with "
          "--min-hosts",
          run_, name_);
    }
    return fmt::format(
        "there is no run '{}' at the {}; accepted: HOST:PORT/NAME as in --rendezvous of its hosts",
        run_, name_);
  }

  void read_turns() {
    const std::string key = signing_key(token_, keys_.run());
    std::int64_t generation = parse_whole(find(keys_.newest()).value_or("1"), 1, kMostNumbers);
    while (!reading_.end) {
      const auto text = find(keys_.turn(generation));
      if (!text) return;
      Turn turn = parse_turn(*text, generation, key);
      if (const auto* const end = std::get_if<EndOfHosts>(&turn)) {
        reading_.end = *end;
      } else {
        reading_.newest = std::get<Members>(std::move(turn));
      }
      ++generation;
    }
  }

  void read_host(HostNumber number) {
    HostReading& host = reading_.hosts[number];
    host.process = text_of(keys_.process(number));
    host.greeting = text_of(keys_.greeting(number));
    host.progress = text_of(keys_.progress(number));
    host.life = text_of(keys_.life(number));
    host.refusal = text_of(keys_.refusal(number));
    host.process_state = state_of_process(host.process);
    host.is_here = find(keys_.here(reading_.newest.generation + 1, number)).has_value();
  }

  // Watches until each host is seen to move, or known not to.
  void look_for_life() {
    const Clock::time_point begin = Clock::now();
    for (;; std::this_thread::sleep_for(kLook)) {
      const auto looked = Clock::now() - begin;
      bool is_open = false;
      for (auto& [number, host] : reading_.hosts) {
        if (!may_move(host)) continue;
        const std::string life = text_of(keys_.life(number));
        host.moves = life != std::exchange(host.life, life) && life != kLeft;
        host.progress = text_of(keys_.progress(number));
        // The host may have come since its greeting was looked for.
        if (host.moves && host.greeting.empty()) host.greeting = text_of(keys_.greeting(number));
        is_open = is_open ||
                  (!host.moves && looked < (was_silent(host) ? kSecondLook : kHeartbeatTimeout));
      }
      if (!is_open) return;
    }
  }
  static bool may_move(const HostReading& host) {
    return !host.moves && host.refusal.empty() && host.life != kLeft &&
           host.process_state != ProcessState::ended;
  }
  static bool was_silent(const HostReading& host) {
    const auto progress = parse_progress(host.progress);
    return progress &&
           std::chrono::seconds(seconds_since_1970() - progress->reported) > kHeartbeatTimeout;
  }

  std::string run_;
  std::string token_;
  // "rendezvous HOST:PORT", for messages.
  std::string name_;
  std::optional<StoreClient> client_;
  RunKeys keys_;
  RunReading reading_;
};

}  // namespace

RunReading read_run(const C10dOptions& meeting) {
  return Reader(meeting).reading();
}

}  // namespace rubato::hosts_detail
