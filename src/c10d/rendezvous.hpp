#pragma once

#include <string>
#include <vector>

#include <rubato/c10d/c10d_hosts.hpp>

#include "c10d/greeting.hpp"
#include "c10d/store.hpp"
#include "rendezvous/store_server.hpp"

namespace rubato::c10d_hosts_detail {

/// What hosts know of each other once they have met.
struct Meeting {
  std::vector<std::string> names;
  std::vector<double> weights;
};

/// Meets the other hosts of a run in a store, and compares what has to be equal:
///
///     greeting/RANK   what the host says of itself
///     proof/RANK      that it knows the token, and has read all greetings
///     read/RANK       that it has read all that it needs from the store
///
/// Throws Error as c10d_hosts() does. The one that serves the store then stays until the others
/// have read why, for a few seconds at most.
///
/// `server` is that of the store where this host serves it, or null.
[[nodiscard]] Meeting meet(Store& store, const rendezvous_detail::StoreServer* server,
                           const C10dOptions& options);

}  // namespace rubato::c10d_hosts_detail
