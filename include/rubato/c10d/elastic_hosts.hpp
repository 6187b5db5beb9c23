#pragma once

#include <functional>
#include <memory>
#include <string>

#include <rubato/c10d/c10d_hosts.hpp>
#include <rubato/runtime/elastic_hosts.hpp>

namespace rubato {

/// How a host takes part in a run whose hosts come and go.
struct ElasticOptions {
  /// Where they meet, and what has to be equal. The store has to outlive every host: `run` is not
  /// empty. `count` is of how many hosts the run begins; fewer begin it when the time limit has
  /// passed. `rank` is not used: hosts are numbered as they come.
  C10dOptions meeting{};
  /// With fewer the hosts wait for others; 1 to `meeting.count`.
  int least = 1;
  /// More are refused; `meeting.count` to kMaxHosts.
  int most = kMaxHosts;
  /// Asked while the host waits for others: true makes regroup() throw HostLost. May be empty.
  std::function<bool()> interrupted{};
  /// Hears, in a line, what a person should know while the host waits. May be empty.
  std::function<void(const std::string& line)> tell{};
};

/// A host among those that come and go, on libtorch's c10d (c10d_hosts()). It has met nobody before
/// its first regroup(). Until it is destroyed a thread of its own tells the others that it is
/// there. A host whose thread is silent for five seconds, or whose process is seen to have ended,
/// is lost; so is one that lets the others wait for longer than the time limit, in a step or when a
/// group is formed. Of two that do not reach each other the group goes on without one, whose
/// regroup() throws HostLost, as it does where too few reach each other.
///
/// Throws Error where an option is out of its range or the store cannot be reached. The others
/// refuse a host that knows another token, or has said something else that has to be equal.
[[nodiscard]] std::shared_ptr<ElasticHosts> elastic_hosts(ElasticOptions options);

}  // namespace rubato
