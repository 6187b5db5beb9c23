#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "hosts/run_status/members.hpp"

namespace rubato::hosts_detail {

/// Time for a host to introduce itself and to be seen alive.
inline constexpr std::chrono::milliseconds kIntroduction{2000};
/// Time for which a group is held back for newcomers that introduce themselves one after the other.
inline constexpr std::chrono::milliseconds kArrivals = 2 * kIntroduction;

enum class Life {
  alive,
  gone,
  /// The host has not been seen alive or gone yet.
  unknown,
};

/// A host as another one finds it in the store.
struct SeenHost {
  Life life = Life::unknown;
  /// Time for which it has been looked for.
  std::chrono::milliseconds looked_for{};
  bool has_introduced_itself = false;
  /// Why its greeting keeps it from taking part; empty if nothing does.
  std::string objection{};
  bool is_refused = false;
  /// Steps of the checkpoint that it brings, if it has introduced itself.
  std::optional<std::int64_t> brings{};
  /// Its entry for the next generation; empty until it has made one.
  std::optional<Here> here{};
};

/// Everything that a host's decision depends on.
struct Snapshot {
  HostNumber own = 0;
  /// This host's entry for the next generation.
  Here here{};
  /// The generation in which it has, or had, its place; 0 means none.
  std::int64_t place = 0;
  /// The newest generation, and the end of the run if it has ended after that.
  Members newest{};
  std::optional<EndOfHosts> end{};
  /// The most steps that one of its last hosts has reported, if the run has ended.
  std::int64_t steps = 0;
  /// Steps of the checkpoint that this host brings, if it brings one.
  std::optional<std::int64_t> brings{};
  /// Why the others refuse this host; empty if they do not.
  std::string refusal{};
  /// Why they have continued without it, as it and one of them do not reach each other; empty if
  /// they have not.
  std::string cut_off{};
  /// Number of hosts that have come.
  HostNumber arrivals = 0;
  /// All others that are in the newest generation or may join the next one.
  std::map<HostNumber, SeenHost> hosts{};
  /// Time for which this host has been waiting for the successor of the newest generation.
  std::chrono::milliseconds waited{};

  /// This host's knowledge of another one.
  [[nodiscard]] const SeenHost& seen(HostNumber host) const;
};

struct MembershipOptions {
  /// Numbers of hosts with which the run begins, at least continues, and at most computes.
  std::size_t begin = 1;
  std::size_t least = 1;
  std::size_t most = 1;
  /// Time limit for a host that is alive and does not come.
  std::chrono::milliseconds timeout{};
  /// A host without a place in a run that is over waits for up to `timeout` until another one opens
  /// the run again.
  bool waits_for_opening = false;
};

struct Decision {
  enum class Action {
    wait,
    /// This host is in the newest generation: it connects with the others.
    take_place,
    /// The others continue without this host, or have not noticed it: it comes again, under a new
    /// number.
    come_anew,
    /// `proposal` becomes the next generation, unless there is one already.
    propose,
    /// The run is over, and this host brings a checkpoint: it opens the run again, unless another
    /// one has, and comes as a new host.
    open_again,
    /// The run has ended for all (Snapshot::end).
    end,
    /// The others refuse this host (Snapshot::refusal).
    give_up_refused,
    /// They have left this host out because a link is missing (Snapshot::cut_off).
    give_up_cut_off,
    /// All hosts that had a state are gone.
    give_up_alone,
  };
  Action action = Action::wait;
  Members proposal{};
  /// Hosts that this one refuses, and why. They have to be told whatever the action.
  std::map<HostNumber, std::string> refusals{};
  /// Number of hosts that a leader sees, and the number that is needed. Other hosts leave both at
  /// 0.
  std::size_t there = 0;
  std::size_t wanted = 0;
};

/// True if this host leads as far as it sees: it is the first that is there. A member that is alive
/// and does not come is waited for until the time limit. `see` is called for few of the other
/// hosts: only as long as those before this one are gone.
[[nodiscard]] bool leads(const Snapshot& snapshot, std::chrono::milliseconds timeout,
                         const std::function<const SeenHost&(HostNumber)>& see);

/// Decides who takes part in a run whose hosts come and go, who leads, who is refused, and when
/// this host gives up. A pure function of the snapshot: it reads no store and no clock
/// (docs/adr/0050).
[[nodiscard]] Decision decide(const Snapshot& snapshot, const MembershipOptions& options);

/// How one generation followed another one, in a line for people.
[[nodiscard]] std::string story_of(const Members& before, const Members& now,
                                   std::string_view reason, std::chrono::duration<double> took);

}  // namespace rubato::hosts_detail
