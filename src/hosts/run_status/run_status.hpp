#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "members.hpp"
#include "process_name.hpp"

namespace rubato::c10d_hosts_detail {

/// What is in the store of a host, each text as it stands there and empty where nothing does.
struct HostReading {
  std::string process{};
  std::string greeting{};
  std::string progress{};
  std::string life{};
  /// Why the others refuse it.
  std::string refusal{};
  /// Of its process, seen from here.
  ProcessState process_state = ProcessState::unknown;
  /// Whether its signs of life moved while they were looked at.
  bool moves = false;
  /// Whether it has come to the generation that follows the newest one.
  bool is_here = false;
};

/// What is in the store of a run, as somebody reads it who takes no part in it.
struct RunReading {
  Members newest{};
  std::optional<RunEnd> end{};
  /// Of the newest generation, and of all that may come to be in the next one.
  std::map<HostNumber, HostReading> hosts{};
  /// RunKeys::writer().
  std::string writer{};
  /// In seconds since 1970.
  std::int64_t now = 0;
};

enum class HostState {
  /// It gives signs of life. A host without a rank waits to take part.
  alive,
  /// It gives none.
  silent,
  /// It has said that it goes.
  left,
  /// Its process, on this machine, has ended.
  ended,
  refused,
};

struct HostStatus {
  HostNumber host = 0;
  /// In the newest generation; empty of a host that has none there.
  std::optional<std::size_t> rank{};
  HostState state = HostState::silent;
  /// Where it runs, and is reached; empty where it has not introduced itself.
  std::string machine{};
  std::string interface {};
  std::optional<double> weight{};
  std::optional<std::int64_t> process{};
  /// Steps that it has done; empty where it has no state, or has not told.
  std::optional<std::int64_t> steps{};
  /// Seconds since it came and, of a silent one, since its last sign of life, by the clocks of its
  /// machine and this one.
  std::optional<std::int64_t> here_for{};
  std::optional<std::int64_t> silent_for{};
  std::string refusal{};
};

enum class RunState {
  /// Its hosts are fewer than there have to be.
  waits,
  trains,
  /// The next generation is to be formed: a host has come, has gone or is silent.
  regroups,
  /// No host of it gives signs of life, and it has not ended.
  deserted,
  /// It was stopped by a signal.
  stopped,
  complete,
};

/// How a run whose hosts come and go stands.
struct RunStatus {
  RunState state = RunState::waits;
  /// 0 before it has begun.
  std::int64_t generation = 0;
  /// The furthest of its hosts has done so many; empty while none has a state.
  std::optional<std::int64_t> steps{};
  /// The hosts that are alive and may take part; and how many it waits for, where it waits.
  std::size_t there = 0;
  std::size_t wanted = 0;
  /// --cores, of all hosts together, --hosts, --min-hosts and --max-hosts; empty while no host has
  /// introduced itself.
  std::optional<std::int64_t> cores{};
  std::optional<std::int64_t> first{};
  std::optional<std::int64_t> least{};
  std::optional<std::int64_t> most{};
  /// Who writes it, and where on its machine, as it has announced.
  struct Writer {
    HostNumber host = 0;
    std::string folder;
  };
  std::optional<Writer> writer{};
  /// By rank, and behind them those without one, as they have come. Of these the ones that have
  /// gone are left out.
  std::vector<HostStatus> hosts{};
};

/// What a reading says. Texts of hosts that cannot be read count as if they were missing.
[[nodiscard]] RunStatus status_of(const RunReading& reading);

}  // namespace rubato::c10d_hosts_detail
