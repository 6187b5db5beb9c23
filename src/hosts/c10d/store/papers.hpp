#pragma once

#include <cstdint>
#include <string>

#include "hosts/run_status/members.hpp"
#include "hosts/run_status/run_keys.hpp"
#include "store.hpp"

namespace rubato::c10d_hosts_detail {

/// What a host has in the store. A store that was started again has nothing: the hosts that live
/// put it there again, each its own, and the run is where it was.
struct Papers {
  RunKeys keys{};
  HostNumber own = 0;
  std::string process{};
  std::string greeting{};
  std::string proof{};
  /// The generation in which the host has its place, as it stands in the store; none has a number
  /// of 0.
  Members members{};
  std::string members_text{};
  /// In which it writes the run; empty where it does not.
  std::string folder{};
};

enum class Entry {
  /// The store is the one that is known, and the run in it.
  known,
  /// It is another one, in which the run now is as far as this host knows it.
  restored,
  /// It is another one, and this host has no place in a run: it comes as a new host.
  without_place,
  /// It has a run of other hosts under that name, or this one has gone on without this host.
  displaced,
};

/// That the host writes the run. Requires a folder.
[[nodiscard]] std::string writer_text(const Papers& papers);

/// Looks at the store behind a new connection. `store_name` is that of the store that was known,
/// and becomes that of this one. A host that has a place puts its papers into a store that is
/// another one, in place of whatever was begun there since: it was there before. Throws StoreLost.
[[nodiscard]] Entry enter(Store& store, std::string& store_name, const Papers& papers);

}  // namespace rubato::c10d_hosts_detail
