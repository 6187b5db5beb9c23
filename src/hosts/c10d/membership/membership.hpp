#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "hosts/run_status/members.hpp"

namespace rubato::c10d_hosts_detail {

/// For a host to introduce itself and to be seen alive.
inline constexpr std::chrono::milliseconds kIntroduction{2000};
/// How long a group is held back for all that come, one after the other, to do so.
inline constexpr std::chrono::milliseconds kArrivals = 2 * kIntroduction;

enum class Life {
  alive,
  gone,
  /// Neither is seen yet.
  unknown,
};

/// A host as another one finds it in the store.
struct SeenHost {
  Life life = Life::unknown;
  /// For how long it has been looked for.
  std::chrono::milliseconds looked_for{};
  bool has_introduced_itself = false;
  /// Why what it has said of itself keeps it from taking part; empty where nothing does.
  std::string objection{};
  bool is_refused = false;
  /// The steps of the checkpoint that it brings, where it has introduced itself.
  std::optional<std::int64_t> brings{};
  /// With what it has come to the next generation; empty while it has not.
  std::optional<Here> here{};
};

/// What a host knows when it decides.
struct Snapshot {
  HostNumber own = 0;
  /// With what it comes to the next generation.
  Here here{};
  /// The generation in which it has, or had, its place; 0 is none.
  std::int64_t place = 0;
  /// The newest there is, and whether the run has ended behind it.
  Members newest{};
  std::optional<RunEnd> end{};
  /// If the run has ended, this is the most steps that one of its last hosts has reported.
  std::int64_t steps = 0;
  /// The steps of the checkpoint that this host brings, if it brings one.
  std::optional<std::int64_t> brings{};
  /// Why the others refuse this host; empty where they do not.
  std::string refusal{};
  /// Why they have gone on without it, as it and one of them do not reach each other; empty where
  /// they have not.
  std::string cut_off{};
  /// How many hosts have come.
  HostNumber arrivals = 0;
  /// All others that are in the newest generation or may come to be in the next one.
  std::map<HostNumber, SeenHost> hosts{};
  /// For how long this host has been waiting for what follows the newest generation.
  std::chrono::milliseconds waited{};
};

struct MembershipOptions {
  /// Of how many hosts the run begins; with how many it goes on; how many there may be.
  std::size_t begin = 1;
  std::size_t least = 1;
  std::size_t most = 1;
  /// For how long a host is waited for that lives and does not come.
  std::chrono::milliseconds timeout{};
  /// If this is set, a host without a place in a run that is over waits for up to `timeout` for one
  /// that opens the run again.
  bool waits_for_opening = false;
};

struct Decision {
  enum class Action {
    wait,
    /// This host is in the newest generation: it connects with the others.
    take_place,
    /// The others go on without it, or have not noticed it: it comes again, under a new number.
    come_anew,
    /// `proposal` is the next generation, unless there is one already.
    propose,
    /// The run is over, and this host brings what it has come to: it opens it again, unless another
    /// one has, and comes as a new host.
    open_again,
    /// The run has ended for all (Snapshot::end).
    end,
    /// The others refuse this host (Snapshot::refusal).
    give_up_refused,
    /// They have left it out, for want of a link (Snapshot::cut_off).
    give_up_cut_off,
    /// All that had a state are gone.
    give_up_alone,
  };
  Action action = Action::wait;
  Members proposal{};
  /// Hosts that this one refuses, and why. To be told whatever the action.
  std::map<HostNumber, std::string> refusals{};
  /// Of a leader: how many hosts there are, and how many are needed. Others leave both at 0.
  std::size_t there = 0;
  std::size_t wanted = 0;
};

/// Who takes part in a run whose hosts come and go, who leads, who is refused, and when this host
/// gives up. A function of what it knows: it reads no store and no clock (docs/adr/0050).
[[nodiscard]] Decision decide(const Snapshot& snapshot, const MembershipOptions& options);

}  // namespace rubato::c10d_hosts_detail
