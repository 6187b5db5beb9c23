#include "read_run.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/hosts/c10d_hosts.hpp>

#include "host_progress.hpp"
#include "hosts/rendezvous/store_client.hpp"
#include "run_keys.hpp"

namespace rubato::c10d_hosts_detail {

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
// kSilence.
constexpr milliseconds kSecondLook{4 * kBeat};

// The store of a run, opened for reading.
class ReadStore {
 public:
  explicit ReadStore(const RunPlace& place)
      : name_(fmt::format("rendezvous {}:{}", place.host, place.port)) {
    try {
      client_.emplace(StoreClient::Options{
          .host = place.host, .port = place.port, .token = place.token, .timeout = kPatience});
    } catch (const Refused& refused) {
      throw Error(fmt::format("cannot reach the {}: {}", name_, refused.what()));
    } catch (const Error& error) {
      throw HostLost(
          fmt::format("cannot reach the {}: {}; accepted: HOST:PORT/NAME at a `rubato rendezvous`",
                      name_, error.what()));
    }
  }

  // "rendezvous node0:29500".
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::optional<std::string> get(const std::string& key) {
    try {
      return client_->get(key);
    } catch (const Error& error) {
      throw HostLost(fmt::format("the {} does not answer: {}", name_, error.what()));
    }
  }

 private:
  std::string name_;
  std::optional<StoreClient> client_;
};

class Reader {
 public:
  explicit Reader(const RunPlace& place) : place_(place), store_(place) {}

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
  [[nodiscard]] std::optional<std::string> find(const std::string& key) {
    return store_.get(fmt::format("{}/{}", run_prefix(place_.run), key));
  }
  [[nodiscard]] std::string text_of(const std::string& key) { return find(key).value_or(""); }

  [[nodiscard]] std::string absence() {
    // Hosts that do not come and go put their greetings here (rendezvous.hpp).
    if (store_.get(fmt::format("rubato/{}/greeting/0", place_.run))) {
      return fmt::format(
          "the hosts of the run '{}' at the {} do not come and go; accepted: a run with "
          "--min-hosts",
          place_.run, store_.name());
    }
    return fmt::format(
        "there is no run '{}' at the {}; accepted: HOST:PORT/NAME as in --rendezvous of its hosts",
        place_.run, store_.name());
  }

  void read_turns() {
    const std::string key = signing_key(place_.token, keys_.run());
    std::int64_t generation = parse_whole(find(keys_.newest()).value_or("1"), 1, kMostNumbers);
    while (!reading_.end) {
      const auto text = find(keys_.turn(generation));
      if (!text) return;
      Turn turn = parse_turn(*text, generation, key);
      if (const auto* const end = std::get_if<RunEnd>(&turn)) {
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
        is_open = is_open || (!host.moves && looked < (was_silent(host) ? kSecondLook : kSilence));
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
    return progress && std::chrono::seconds(seconds_since_1970() - progress->told) > kSilence;
  }

  const RunPlace& place_;
  ReadStore store_;
  RunKeys keys_;
  RunReading reading_;
};

}  // namespace

RunReading read_run(const RunPlace& place) {
  return Reader(place).reading();
}

}  // namespace rubato::c10d_hosts_detail
