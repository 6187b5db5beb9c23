// decide() first handles what concerns this host alone: the end of the run, a refusal, a missing
// link, its own place. Only the leader computes the next generation (class Leader): it takes the
// members that are left, in their order, then the arrivals by their numbers, and leaves out hosts
// until all of the others reach each other, always the one with the largest burden(). As long as
// something may still become known it waits, each time within a limit, so nobody is waited for
// without end. A list of members settles all numbers below first_open and names those above it that
// are out, so a leader needs no memory of its own (docs/adr/0050-membership.md).

#include "membership.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rubato::hosts_detail {

namespace {

using Action = Decision::Action;

// Derives the leader's decision from a snapshot: the next generation, or what it still waits for.
class Leader {
 public:
  Leader(const Snapshot& snapshot, const MembershipOptions& options)
      : snapshot_(snapshot),
        options_(options),
        patient_(snapshot.waited < options.timeout),
        next_{
            .generation = newest().generation + 1, .hosts = {}, .first_open = newest().first_open} {
  }

  [[nodiscard]] Decision decision() {
    const bool members_known = add_members();
    const bool arrivals_known = add_arrivals();
    decision_.there = next_.hosts.size();
    decision_.wanted = needed(next_.hosts);
    if (!members_known || !arrivals_known) return waiting();
    if (lacks_state()) {
      decision_.action = has_lost_state() ? Action::give_up_alone : Action::wait;
      return std::move(decision_);
    }
    if (decision_.there < decision_.wanted) return waiting();
    leave_out_cut_off();
    begin_with_newest_checkpoint();
    close_numbers();
    decision_.action = Action::propose;
    decision_.proposal = std::move(next_);
    return std::move(decision_);
  }

 private:
  [[nodiscard]] const Members& newest() const { return snapshot_.newest; }
  [[nodiscard]] const SeenHost& seen(HostNumber host) const { return snapshot_.seen(host); }
  [[nodiscard]] Decision waiting() {
    decision_.action = Action::wait;
    return std::move(decision_);
  }

  // Adds the remaining hosts of the newest generation, in their order. Returns false while one may
  // still come.
  [[nodiscard]] bool add_members() {
    bool all_known = true;
    for (const Member& member : newest().hosts) {
      if (member.host == snapshot_.own) {
        next_.hosts.push_back({.host = snapshot_.own, .standing = snapshot_.here.standing});
        continue;
      }
      const SeenHost& other = seen(member.host);
      // The host may have come, and gone again since.
      if (other.life == Life::gone) continue;
      if (other.here) {
        next_.hosts.push_back({.host = member.host, .standing = other.here->standing});
      } else {
        all_known = all_known && !patient_;
      }
    }
    return all_known;
  }

  // Adds the hosts that have come since. Returns false while one may still introduce itself; after
  // kArrivals the known ones no longer wait for it, as yet another one may always come.
  [[nodiscard]] bool add_arrivals() {
    bool all_known = true;
    const bool waits = snapshot_.waited < kArrivals;
    next_.out = newest().out;
    for (HostNumber host = newest().first_open; host <= snapshot_.arrivals; ++host) {
      if (next_.contains(host) || newest().contains(host) || next_.out.contains(host)) continue;
      if (host == snapshot_.own) {
        add(host);
        continue;
      }
      const SeenHost& other = seen(host);
      if (other.life == Life::gone || other.is_refused) {
        next_.out.insert(host);
      } else if (other.life == Life::unknown || !other.has_introduced_itself) {
        all_known = all_known && (!waits || other.looked_for >= kIntroduction);
      } else if (!other.objection.empty()) {
        refuse(host, other.objection);
      } else {
        add(host);
      }
    }
    return all_known;
  }
  void add(HostNumber host) {
    if (next_.hosts.size() < options_.most) {
      next_.hosts.push_back({.host = host});
    } else if (newest().passed.contains(host)) {
      // There were as many in the generation before, which was connected: none of them has just
      // died.
      refuse(host,
             fmt::format("there are {} hosts already; accepted: no more than that (--max-hosts)",
                         options_.most));
    } else {
      next_.passed.insert(host);
    }
  }
  void refuse(HostNumber host, std::string why) {
    next_.out.insert(host);
    decision_.refusals.emplace(host, std::move(why));
  }

  // A host with a state may be late; a group without one would begin the run anew.
  [[nodiscard]] bool lacks_state() const {
    return std::ranges::any_of(newest().hosts, has_state) &&
           std::ranges::none_of(next_.hosts, has_state);
  }
  [[nodiscard]] bool has_lost_state() const {
    return std::ranges::none_of(newest().hosts, [this](const Member& member) {
      return has_state(member) && seen(member.host).life != Life::gone;
    });
  }
  static bool has_state(const Member& member) { return member.standing.steps.has_value(); }

  // Leaves out hosts until all of the others reach each other; if these are too few, all of them
  // try again.
  void leave_out_cut_off() {
    Members left = next_;
    for (;;) {
      const auto worst = std::ranges::max_element(
          left.hosts, {}, [&](const Member& member) { return burden(member, left.hosts); });
      const std::string* const why = link_missing_to(worst->host, left.hosts);
      if (why == nullptr) break;
      left.cut_off.emplace(worst->host, *why);
      left.hosts.erase(worst);
    }
    if (left.hosts.size() >= needed(left.hosts)) next_ = std::move(left);
  }
  // The host with the largest burden is left out first. A host with a state is not left out before
  // one that has none.
  using Burden = std::tuple<bool, bool, std::int64_t, std::int64_t, HostNumber>;
  [[nodiscard]] Burden burden(const Member& member, const std::vector<Member>& hosts) const {
    const auto cuts = std::ranges::count_if(hosts, [&](const Member& other) {
      return missing_link(member.host, other.host) != nullptr;
    });
    return {cuts > 0, !has_state(member), cuts, -member.standing.steps.value_or(0), member.host};
  }
  // A sentence about the missing link, or null if each of the two reaches the other one, as far as
  // they know.
  [[nodiscard]] const std::string* missing_link(HostNumber one, HostNumber other) const {
    for (const auto& [from, to] : {std::pair(one, other), std::pair(other, one)}) {
      const Cuts& cuts = cuts_of(from);
      if (const auto found = cuts.find(to); found != cuts.end()) return &found->second;
    }
    return nullptr;
  }
  [[nodiscard]] const std::string* link_missing_to(HostNumber host,
                                                   const std::vector<Member>& hosts) const {
    for (const Member& other : hosts) {
      if (const std::string* const why = missing_link(host, other.host)) return why;
    }
    return nullptr;
  }
  [[nodiscard]] const Cuts& cuts_of(HostNumber host) const {
    static const Cuts none;
    if (host == snapshot_.own) return snapshot_.here.cuts;
    const SeenHost& other = seen(host);
    return other.here ? other.here->cuts : none;
  }

  // The first host of the first generation begins the run, from its own checkpoint.
  void begin_with_newest_checkpoint() {
    if (newest().generation != 0) return;
    std::ranges::stable_sort(next_.hosts, std::ranges::greater(), [this](const Member& member) {
      const bool own = member.host == snapshot_.own;
      return (own ? snapshot_.brings : seen(member.host).brings).value_or(-1);
    });
  }

  [[nodiscard]] std::size_t needed(const std::vector<Member>& hosts) const {
    if (newest().generation == 0) return patient_ ? options_.begin : options_.least;
    // A host that has finished waits for nobody.
    const bool finished =
        std::ranges::any_of(hosts, [](const Member& member) { return member.standing.finished; });
    return finished ? 1 : options_.least;
  }

  // Hosts that are left out can never take part under these numbers again.
  void close_numbers() {
    for (const Member& member : newest().hosts) {
      if (!next_.contains(member.host)) next_.out.insert(member.host);
    }
    while (next_.first_open <= snapshot_.arrivals &&
           (next_.contains(next_.first_open) || next_.out.contains(next_.first_open))) {
      ++next_.first_open;
    }
    next_.out.erase(next_.out.begin(), next_.out.lower_bound(next_.first_open));
  }

  const Snapshot& snapshot_;
  const MembershipOptions& options_;
  bool patient_;
  Members next_;
  Decision decision_;
};

// Action of a host without a place in a run that is over: the run was stopped, or all hosts that
// took part have gone.
Decision::Action at_end(const Snapshot& snapshot, const MembershipOptions& options,
                        bool brings_enough) {
  if (brings_enough) return Action::open_again;
  if (options.waits_for_opening && snapshot.waited < options.timeout) return Action::wait;
  return snapshot.end ? Action::end : Action::give_up_alone;
}

}  // namespace

const SeenHost& Snapshot::seen(HostNumber host) const {
  static const SeenHost never;
  const auto found = hosts.find(host);
  return found == hosts.end() ? never : found->second;
}

bool leads(const Snapshot& snapshot, std::chrono::milliseconds timeout,
           const std::function<const SeenHost&(HostNumber)>& see) {
  const Members& newest = snapshot.newest;
  if (newest.generation == 0) {
    for (HostNumber host = 1; host < snapshot.own; ++host) {
      const SeenHost& other = see(host);
      if (other.life != Life::gone && !other.is_refused) return false;
    }
    return true;
  }
  const bool takes_part = newest.contains(snapshot.own);
  if (takes_part && snapshot.place != newest.generation) return false;
  for (const Member& member : newest.hosts) {
    if (member.host == snapshot.own) return true;
    const SeenHost& other = see(member.host);
    if (other.life == Life::gone) continue;
    if (!takes_part || other.here || snapshot.waited < timeout) return false;
  }
  return false;
}

Decision decide(const Snapshot& snapshot, const MembershipOptions& options) {
  const auto only = [](Action action) { return Decision{.action = action}; };
  const auto& brings = snapshot.brings;
  if (snapshot.end == EndOfHosts::paused && snapshot.place == 0) {
    return only(at_end(snapshot, options, brings && *brings >= snapshot.steps));
  }
  if (snapshot.end) return only(Action::end);
  if (!snapshot.refusal.empty()) return only(Action::give_up_refused);
  if (!snapshot.cut_off.empty()) return only(Action::give_up_cut_off);
  const Members& newest = snapshot.newest;
  const bool takes_part = newest.contains(snapshot.own);
  if (takes_part && newest.generation > snapshot.place) return only(Action::take_place);
  if (!takes_part && snapshot.place != 0) return only(Action::come_anew);
  if (takes_part || newest.generation == 0) {
    const bool is_leader =
        leads(snapshot, options.timeout,
              [&](HostNumber host) -> const SeenHost& { return snapshot.seen(host); });
    return is_leader ? Leader(snapshot, options).decision() : only(Action::wait);
  }
  const bool all_gone = std::ranges::all_of(newest.hosts, [&](const Member& member) {
    return snapshot.seen(member.host).life == Life::gone;
  });
  if (all_gone) return only(at_end(snapshot, options, brings.has_value()));
  // The others may have taken this host for one that has gone.
  return only(snapshot.waited < options.timeout ? Action::wait : Action::come_anew);
}

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

}  // namespace rubato::hosts_detail
