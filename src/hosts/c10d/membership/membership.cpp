#include "membership.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace rubato::c10d_hosts_detail {

namespace {

using Action = Decision::Action;

// What a leader makes of a snapshot: the next generation, or what it still waits for.
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
  [[nodiscard]] const SeenHost& seen(HostNumber host) const {
    static const SeenHost never;
    const auto found = snapshot_.hosts.find(host);
    return found == snapshot_.hosts.end() ? never : found->second;
  }
  [[nodiscard]] Decision waiting() {
    decision_.action = Action::wait;
    return std::move(decision_);
  }

  // Those left of the newest generation, in their order. False while one may still come.
  [[nodiscard]] bool add_members() {
    bool all_known = true;
    for (const Member& member : newest().hosts) {
      if (member.host == snapshot_.own) {
        next_.hosts.push_back({.host = snapshot_.own, .standing = snapshot_.here.standing});
        continue;
      }
      const SeenHost& other = seen(member.host);
      // It may have come, and gone again since.
      if (other.life == Life::gone) continue;
      if (other.here) {
        next_.hosts.push_back({.host = member.host, .standing = other.here->standing});
      } else {
        all_known = all_known && !patient_;
      }
    }
    return all_known;
  }

  // Those who have come since. False while one may still introduce itself; where there is always
  // another one, those that are known are not kept waiting for it.
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
      // They are as many after a generation that was connected, too: none of them has just died.
      refuse(host, fmt::format("there are {} hosts already; accepted: up to as many (--max-hosts)",
                               options_.most));
    } else {
      next_.passed.insert(host);
    }
  }
  void refuse(HostNumber host, std::string why) {
    next_.out.insert(host);
    decision_.refusals.emplace(host, std::move(why));
  }

  // Whoever has a state may be late; a group without one would begin the run anew.
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

  // Until each of those left reaches each other one; where these are too few, all of them try
  // again.
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
  // Of those that lack a link, the largest is left out first. A state is not left out for want of
  // one that has none.
  using Burden = std::tuple<bool, bool, std::int64_t, std::int64_t, HostNumber>;
  [[nodiscard]] Burden burden(const Member& member, const std::vector<Member>& hosts) const {
    const auto cuts = std::ranges::count_if(hosts, [&](const Member& other) {
      return missing_link(member.host, other.host) != nullptr;
    });
    return {cuts > 0, !has_state(member), cuts, -member.standing.steps.value_or(0), member.host};
  }
  // A sentence that says so; null where each of the two reaches the other one, as far as they know.
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
    // Who has finished waits for nobody.
    const bool finished =
        std::ranges::any_of(hosts, [](const Member& member) { return member.standing.finished; });
    return finished ? 1 : options_.least;
  }

  // Those that are left out are so for good, under these numbers.
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

[[nodiscard]] bool is_gone(const Snapshot& snapshot, HostNumber host) {
  const auto found = snapshot.hosts.find(host);
  return found != snapshot.hosts.end() && found->second.life == Life::gone;
}

// Of the first generation: whether all that have come before are gone.
[[nodiscard]] bool leads_first(const Snapshot& snapshot) {
  for (HostNumber host = 1; host < snapshot.own; ++host) {
    const auto found = snapshot.hosts.find(host);
    if (found != snapshot.hosts.end() && found->second.is_refused) continue;
    if (!is_gone(snapshot, host)) return false;
  }
  return true;
}

// Of the others: the first of the newest one that is there. One that lives and does not come is
// waited for as long as the time limit is.
[[nodiscard]] bool leads(const Snapshot& snapshot, bool patient) {
  for (const Member& member : snapshot.newest.hosts) {
    if (member.host == snapshot.own) return true;
    if (is_gone(snapshot, member.host)) continue;
    const auto found = snapshot.hosts.find(member.host);
    if (patient || (found != snapshot.hosts.end() && found->second.here)) return false;
  }
  return false;
}

// The run is over for a host without a place in it: stopped after so many steps, or none is left of
// those that took part.
Decision::Action at_end(const Snapshot& snapshot, const MembershipOptions& options,
                        bool brings_enough) {
  if (brings_enough) return Action::open_again;
  if (options.waits_for_opening && snapshot.waited < options.timeout) return Action::wait;
  return snapshot.end ? Action::end : Action::give_up_alone;
}

}  // namespace

Decision decide(const Snapshot& snapshot, const MembershipOptions& options) {
  const auto only = [](Action action) { return Decision{.action = action}; };
  const auto& brings = snapshot.brings;
  if (snapshot.end == RunEnd::paused && snapshot.place == 0) {
    return only(at_end(snapshot, options, brings && *brings >= snapshot.steps));
  }
  if (snapshot.end) return only(Action::end);
  if (!snapshot.refusal.empty()) return only(Action::give_up_refused);
  if (!snapshot.cut_off.empty()) return only(Action::give_up_cut_off);
  const Members& newest = snapshot.newest;
  const bool patient = snapshot.waited < options.timeout;
  if (newest.contains(snapshot.own)) {
    if (newest.generation > snapshot.place) return only(Action::take_place);
    return leads(snapshot, patient) ? Leader(snapshot, options).decision() : only(Action::wait);
  }
  if (snapshot.place != 0) return only(Action::come_anew);
  if (newest.generation == 0) {
    return leads_first(snapshot) ? Leader(snapshot, options).decision() : only(Action::wait);
  }
  const bool all_gone = std::ranges::all_of(
      newest.hosts, [&](const Member& member) { return is_gone(snapshot, member.host); });
  if (all_gone) return only(at_end(snapshot, options, brings.has_value()));
  // It may have been taken for one that has gone.
  return only(patient ? Action::wait : Action::come_anew);
}

}  // namespace rubato::c10d_hosts_detail
