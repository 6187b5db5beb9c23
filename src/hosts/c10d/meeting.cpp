// Hosts meet in two rounds of MeetingPoint::all(), in each of which a host puts a text and reads
// those of all: first the greetings, then the proofs, which are HMACs over the rank and all
// greetings (docs/adr/0044-hosts-on-c10d.md). The token is therefore never sent, and what is
// compared is what was proved. Apart from the protocol's version and the number of hosts, nothing
// is compared before the proofs; every host checks the same texts, so all reach the same verdict.
// After an error a host marks that it has read enough, for which the host that serves the store
// waits.

#include "meeting.hpp"

#include <cmath>
#include <exception>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>

#include "base/core/throw_error.hpp"

namespace rubato::hosts_detail {

namespace {

constexpr std::chrono::milliseconds kLeastTimeout = std::chrono::seconds(1);

}  // namespace

void check_meeting(const C10dOptions& options) {
  if (options.count < 1 || options.count > kMaxHosts) {
    throw_error("{} hosts; accepted: 1 to {}", options.count, kMaxHosts);
  }
  if (options.rank < 0 || options.rank >= options.count) {
    throw_error("host {} of {} hosts; accepted: 0 to one less than the number of hosts",
                options.rank, options.count);
  }
  if (options.port < 1 || options.port > rendezvous_detail::kMaxPort) {
    throw_error("the port {}; accepted: 1 to {}", options.port, rendezvous_detail::kMaxPort);
  }
  if (!(options.weight > 0) || !std::isfinite(options.weight)) {
    throw_error("the weight {}; accepted: a number above 0", options.weight);
  }
  if (options.timeout < kLeastTimeout) {
    throw_error("a time limit of {} ms; accepted: at least 1 s", options.timeout.count());
  }
}

ElasticOptions checked_elastic(ElasticOptions options) {
  C10dOptions& meeting = options.meeting;
  meeting.rank = 0;
  check_meeting(meeting);
  if (meeting.run.empty()) {
    throw Error(
        "hosts that come and go meet at host 0, which may go; accepted: a store that outlives all "
        "hosts, and a name for the run in it");
  }
  if (options.least < 1 || options.least > meeting.count) {
    throw_error("at least {} hosts; accepted: 1 to {}, the number that the run begins with",
                options.least, meeting.count);
  }
  if (options.most < meeting.count || options.most > kMaxHosts) {
    throw_error("at most {} hosts; accepted: {}, the number that the run begins with, to {}",
                options.most, meeting.count, kMaxHosts);
  }
  return options;
}

namespace {

using rendezvous_detail::StoreServer;

// Time for which the host that serves the store stays so that others can read why there is no run.
constexpr milliseconds kStay = std::chrono::seconds(5);

class MeetingPoint {
 public:
  MeetingPoint(Store& store, const StoreServer* server, const C10dOptions& options)
      : store_(store), server_(server), options_(options) {}

  // Puts this host's text, and returns those of all hosts. `look` is called with each when it has
  // come.
  std::vector<std::string> all(std::string_view what, const std::string& own,
                               const std::function<void(int host, const std::string&)>& look) {
    if (!store_.put(key(what, options_.rank), own)) {
      throw_error(
          "another process is host {} at the rendezvous {}:{}; accepted: a rank for each host{}",
          options_.rank, options_.address, options_.port,
          options_.run.empty() ? "" : ", and a new name for each run");
    }
    const Clock::time_point deadline = Clock::now() + options_.timeout;
    std::vector<std::string> texts;
    std::vector<int> missing;
    for (int host = 0; host < options_.count; ++host) {
      const auto text = store_.wait(key(what, host), deadline);
      if (text) look(host, *text);
      if (!text) missing.push_back(host);
      texts.push_back(text.value_or(""));
    }
    if (!missing.empty()) throw Error(absence(missing));
    return texts;
  }

  // Says that this host needs nothing more of the store; the host that serves it waits for all.
  void leave() noexcept {
    try {
      static_cast<void>(store_.put(key("read", options_.rank), "read"));
      if (server_ == nullptr) return;
      const Clock::time_point end = Clock::now() + kStay;
      for (int host = 0; host < options_.count; ++host) {
        static_cast<void>(store_.wait(key("read", host), end));
      }
    } catch (const std::exception&) {
      // The error that is under way matters more.
    }
  }

 private:
  static std::string key(std::string_view what, int host) {
    return fmt::format("{}/{}", what, host);
  }
  [[nodiscard]] std::string absence(const std::vector<int>& missing) const {
    const int refused = server_ == nullptr ? 0 : server_->refused();
    return fmt::format("host{} {} of {} {} not come to the rendezvous {}:{} within {:g} s{}",
                       missing.size() == 1 ? "" : "s", fmt::join(missing, ", "), options_.count,
                       missing.size() == 1 ? "has" : "have", options_.address, options_.port,
                       std::chrono::duration<double>(options_.timeout).count(),
                       refused == 0 ? "" : fmt::format("; {} came with another token", refused));
  }

  Store& store_;
  const StoreServer* server_;
  const C10dOptions& options_;
};

Roster compared(MeetingPoint& point, const C10dOptions& options) {
  const Greeting own = greeting_of(options);
  std::vector<Greeting> greetings;
  const auto texts =
      point.all("greeting", greeting_text(own), [&](int host, const std::string& text) {
        greetings.push_back(parse_greeting(text, host));
        require_same_count(own, greetings.back(), host);
      });
  Roster roster{.names = names_of(greetings), .weights = {}};
  point.all("proof", proof_of(options.token, options.rank, texts),
            [&](int host, const std::string& proof) {
              if (is_same_signature(proof, proof_of(options.token, host, texts))) return;
              throw_error("{} knows another token; accepted: the same on all hosts",
                          roster.names[static_cast<std::size_t>(host)]);
            });
  for (const Greeting& greeting : greetings) roster.weights.push_back(greeting.weight);
  require_compatible(greetings, options.rank);
  return roster;
}

}  // namespace

Roster meet(Store& store, const StoreServer* server, const C10dOptions& options) {
  MeetingPoint point(store, server, options);
  try {
    return compared(point, options);
  } catch (const Error&) {
    point.leave();
    throw;
  }
}

}  // namespace rubato::hosts_detail
