#pragma once

#include <string>
#include <vector>

#include <rubato/hosts/c10d_hosts.hpp>

#include "hosts/rendezvous/store_server.hpp"
#include "hosts/run_status/greeting.hpp"
#include "store.hpp"

namespace rubato::hosts_detail {

/// Throws Error if an option is out of its range.
void check_meeting(const C10dOptions& options);

/// Returns the options of hosts that come and go, with a rank of 0. Throws Error if one is out of
/// its range.
[[nodiscard]] ElasticOptions checked_elastic(ElasticOptions options);

/// Names and weights of all hosts, known once they have met.
struct Roster {
  std::vector<std::string> names;
  std::vector<double> weights;
};

/// Meets the other hosts of a run in a store, and compares what has to be equal:
///
///     greeting/RANK   what the host says of itself
///     proof/RANK      that it knows the token, and has read all greetings
///     read/RANK       that it has read all that it needs from the store
///
/// Throws Error as c10d_hosts() does. The host that serves the store then stays until the others
/// have read why, for a few seconds at most.
///
/// `server` serves the store if this host does so, and is null otherwise.
[[nodiscard]] Roster meet(Store& store, const rendezvous_detail::StoreServer* server,
                          const C10dOptions& options);

}  // namespace rubato::hosts_detail
