#include "forming.hpp"

#include <algorithm>
#include <cstddef>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/core/throw_error.hpp"

namespace rubato::hosts_detail {

namespace {

// Interval between two looks into the store.
constexpr milliseconds kLook{10};
// A host that has lost the store tries to reach it for this multiple of the time limit.
constexpr int kPatience = 2;
// Interval between two lines about a host that waits.
constexpr std::chrono::seconds kReportInterval{10};

}  // namespace

std::variant<std::vector<Greeting>, EndOfHosts> Forming::form(Here& own) {
  const Clock::time_point end = Clock::now() + kPatience * options_.meeting.timeout;
  bool has_reported = false;
  last_report_ = Clock::now();
  while (true) {
    try {
      store_.reconnect(std::min(options_.meeting.timeout, kConnection));
      return form_with_store(own);
    } catch (const StoreLost& lost) {
      store_.disconnect();
      if (Clock::now() >= end || is_interrupted()) throw HostLost(lost.what());
      if (!std::exchange(has_reported, true)) report(fmt::format("{}; trying again", lost.what()));
      std::this_thread::sleep_for(kHeartbeatInterval);
    }
  }
}

std::variant<std::vector<Greeting>, EndOfHosts> Forming::form_with_store(Here& own) {
  using Action = Decision::Action;
  const MembershipOptions membership{.begin = static_cast<std::size_t>(options_.meeting.count),
                                     .least = static_cast<std::size_t>(options_.least),
                                     .most = static_cast<std::size_t>(options_.most),
                                     .timeout = options_.meeting.timeout,
                                     .waits_for_opening = options_.waits_for_opening};
  heartbeat_.set(store_.record());
  heartbeat_.report_steps(own.standing.steps);
  store_.say_here(own);
  for (;; std::this_thread::sleep_for(kLook)) {
    if (is_interrupted()) throw HostLost("interrupted while it waited for other hosts");
    const Snapshot snapshot = store_.look(own);
    const Decision decision = decide(snapshot, membership);
    for (const auto& [host, why] : decision.refusals) {
      if (store_.refuse(host, why)) report(fmt::format("a host is refused: {}", why));
    }
    switch (decision.action) {
      case Action::wait:
        report_waiting(decision);
        break;
      case Action::take_place: {
        std::vector<Greeting> greetings = store_.take_place();
        heartbeat_.set(store_.record());
        return greetings;
      }
      case Action::come_anew:
        // The others are ahead, so the state of this host is of no use.
        own = {};
        heartbeat_.report_steps(own.standing.steps);
        store_.arrive();
        heartbeat_.set(store_.record());
        break;
      case Action::propose:
        store_.propose(decision.proposal);
        break;
      case Action::open_again:
        store_.open_again();
        heartbeat_.set(store_.record());
        report("the run of that name is over; opening it again");
        break;
      case Action::end:
        if (snapshot.place == 0 && snapshot.brings) {
          report(fmt::format("the run of that name has done {} steps, the checkpoint here has {}",
                             snapshot.steps, *snapshot.brings));
        }
        return *snapshot.end;
      case Action::give_up_refused:
        throw_error("the hosts of the run refuse this one: {}", snapshot.refusal);
      case Action::give_up_cut_off:
        throw HostLost(
            fmt::format("the hosts of the run go on without this one: {}", snapshot.cut_off));
      case Action::give_up_alone:
        throw HostLost("the hosts of the run have gone, and its state with them");
    }
  }
}

void Forming::report(const std::string& line) {
  last_report_ = Clock::now();
  if (options_.report) options_.report(line);
}

void Forming::report_waiting(const Decision& decision) {
  if (Clock::now() - last_report_ < kReportInterval) return;
  const std::string whom =
      decision.there < decision.wanted
          ? fmt::format(": {} of {} hosts are there", decision.there, decision.wanted)
          : " for the other hosts";
  report(fmt::format("waiting at {}:{}{}", options_.meeting.address, options_.meeting.port, whom));
}

}  // namespace rubato::hosts_detail
