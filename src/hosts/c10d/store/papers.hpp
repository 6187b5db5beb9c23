#pragma once

#include <cstdint>
#include <string>

#include "hosts/run_status/members.hpp"
#include "hosts/run_status/run_keys.hpp"
#include "store.hpp"

namespace rubato::c10d_hosts_detail {

/// The texts of a host in the store. A store that was started again is empty: the living hosts put
/// their papers there again, each its own, which restores the run.
struct Papers {
  RunKeys keys{};
  HostNumber own = 0;
  std::string process{};
  std::string greeting{};
  std::string proof{};
  /// The generation in which the host has its place, and its text in the store; its number is 0 if
  /// there is none.
  Members members{};
  std::string members_text{};
  /// Folder into which the host writes the run; empty if it does not.
  std::string folder{};
};

enum class Entry {
  /// The store is the known one, and so is the run in it.
  known,
  /// The store is a new one; this host has restored the run in it as far as it knows it.
  restored,
  /// The store is a new one, and this host has no place in a run: it comes as a new host.
  without_place,
  /// The store has a run of other hosts under that name, or the run has continued without this
  /// host.
  displaced,
};

/// The text by which the host announces that it writes the run. Requires a folder.
[[nodiscard]] std::string writer_text(const Papers& papers);

/// Looks at the store behind a new connection. `store_name` is the name of the known store, and is
/// set to that of this one. A host that has a place puts its papers into a new store and replaces
/// whatever was begun there since, because its run is older. Throws StoreLost.
[[nodiscard]] Entry enter(Store& store, std::string& store_name, const Papers& papers);

}  // namespace rubato::c10d_hosts_detail
