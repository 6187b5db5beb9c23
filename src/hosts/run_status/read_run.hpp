#pragma once

#include <string>

#include "run_status.hpp"

namespace rubato::c10d_hosts_detail {

/// A run in the store of a RendezvousServer.
struct RunPlace {
  std::string host;
  int port = 0;
  /// Name of the run; not empty.
  std::string run;
  /// Token of the run's hosts; empty means none.
  std::string token{};
};

/// Looks at a run whose hosts come and go, without taking part: nothing in the store changes. Takes
/// as long as two signs of life, and up to kSilence if a host gives none.
///
/// Throws HostLost if the store does not answer, and Error if it is served with another token, has
/// no such run, or the run's hosts have another token.
[[nodiscard]] RunReading read_run(const RunPlace& place);

}  // namespace rubato::c10d_hosts_detail
