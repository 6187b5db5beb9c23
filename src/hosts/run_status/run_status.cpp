#include "run_status.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "greeting.hpp"
#include "host_progress.hpp"
#include "run_keys.hpp"

namespace rubato::c10d_hosts_detail {

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
      host.silent_for = std::max<std::int64_t>(now - progress->told, 0);
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

std::optional<RunStatus::Writer> writer_in(const std::string& text) {
  const std::size_t border = text.find('\n');
  if (border == std::string::npos) return std::nullopt;
  return readable([&] {
    return RunStatus::Writer{.host = parse_whole(text.substr(0, border), 1, kMostNumbers),
                             .folder = text.substr(border + 1)};
  });
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
    return *reading.end == RunEnd::finished ? RunState::complete : RunState::stopped;
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
  status.writer = writer_in(reading.writer);
  for (const HostStatus& host : status.hosts) {
    if (host.state == HostState::alive) ++status.there;
    status.steps = std::max(status.steps, host.steps);
  }
  status.state = state_of(reading, status);
  return status;
}

}  // namespace rubato::c10d_hosts_detail
