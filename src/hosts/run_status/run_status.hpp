#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <rubato/hosts/c10d_hosts.hpp>

#include "liveness.hpp"
#include "members.hpp"

namespace rubato::hosts_detail {

/// The texts of a host in the store; empty if missing.
struct HostReading {
  std::string process{};
  std::string greeting{};
  std::string progress{};
  std::string life{};
  /// Why the others refuse it.
  std::string refusal{};
  /// State of its process, as seen from here.
  ProcessState process_state = ProcessState::unknown;
  /// Its signs of life changed while they were watched.
  bool moves = false;
  /// It has come to the generation that follows the newest one.
  bool is_here = false;
};

/// The contents of a run's store, read without taking part.
struct RunReading {
  Members newest{};
  std::optional<EndOfHosts> end{};
  /// Hosts of the newest generation, and all that may join the next one.
  std::map<HostNumber, HostReading> hosts{};
  /// RunKeys::writer().
  std::string writer{};
  /// Time of the reading, in seconds since 1970.
  std::int64_t now = 0;
};

enum class HostState {
  /// The host gives signs of life. A host without a rank waits to take part.
  alive,
  /// The host gives no signs of life.
  silent,
  /// The host has said that it leaves.
  left,
  /// The process of the host, on this machine, has ended.
  ended,
  refused,
};

struct HostStatus {
  HostNumber host = 0;
  /// Rank in the newest generation; empty if the host has none there.
  std::optional<std::size_t> rank{};
  HostState state = HostState::silent;
  /// Machine and address of the host; empty until it has introduced itself.
  std::string machine{};
  std::string interface {};
  std::optional<double> weight{};
  std::optional<std::int64_t> process{};
  /// Steps that it has done; empty if it has no state, or has not told.
  std::optional<std::int64_t> steps{};
  /// Seconds since it came and, if it is silent, since its last sign of life, by the clocks of its
  /// machine and this one.
  std::optional<std::int64_t> here_for{};
  std::optional<std::int64_t> silent_for{};
  std::string refusal{};
};

enum class RunState {
  /// The run has fewer hosts than it needs.
  waits,
  trains,
  /// The next generation has to be formed: a host has come, has gone or is silent.
  regroups,
  /// None of its hosts gives signs of life, and the run has not ended.
  deserted,
  /// The run was stopped by a signal.
  stopped,
  complete,
};

/// State of a run whose hosts come and go.
struct RunStatus {
  RunState state = RunState::waits;
  /// Generation of the run; 0 before it has begun.
  std::int64_t generation = 0;
  /// Steps of its most advanced host; empty while none has a state.
  std::optional<std::int64_t> steps{};
  /// Number of hosts that are alive and may take part; and the number that it waits for, if it
  /// waits.
  std::size_t there = 0;
  std::size_t wanted = 0;
  /// --cores, of all hosts together, --hosts, --min-hosts and --max-hosts; empty while no host has
  /// introduced itself.
  std::optional<std::int64_t> cores{};
  std::optional<std::int64_t> first{};
  std::optional<std::int64_t> least{};
  std::optional<std::int64_t> most{};
  std::optional<AnnouncedWriter> writer{};
  /// Hosts by rank, followed by those without one in the order in which they came. Of the latter,
  /// those that have gone are left out.
  std::vector<HostStatus> hosts{};
};

/// Interprets a reading. Texts of hosts that cannot be read count as missing.
[[nodiscard]] RunStatus status_of(const RunReading& reading);

/// Looks at a run whose hosts come and go, without taking part: nothing in the store changes. Only
/// the rendezvous and the token of the options count, and the run needs a name. Takes
/// as long as two signs of life, and up to kHeartbeatTimeout if a host gives none.
///
/// Throws HostLost if the store does not answer, and Error if it is served with another token, has
/// no such run, or the run's hosts have another token.
[[nodiscard]] RunReading read_run(const C10dOptions& meeting);

}  // namespace rubato::hosts_detail
