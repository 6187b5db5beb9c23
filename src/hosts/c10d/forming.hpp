#pragma once

#include <string>
#include <variant>
#include <vector>

#include <rubato/hosts/c10d_hosts.hpp>

#include "hosts/run_status/greeting.hpp"
#include "membership.hpp"
#include "presence.hpp"
#include "run_store.hpp"

namespace rubato::hosts_detail {

/// Time limit for a connection with the store, or with the hosts of a generation.
inline constexpr milliseconds kConnection{10'000};

/// Gets a host its place in the next generation by doing what decide() says. The host is not
/// connected with the others meanwhile.
class Forming {
 public:
  /// All arguments must outlive this object.
  Forming(const ElasticOptions& options, RunStore& store, Heartbeat& heartbeat)
      : options_(options), store_(store), heartbeat_(heartbeat) {}

  /// Returns the greetings of the hosts of the generation, or how the run has ended. `own` is told
  /// to the others, and emptied if they are ahead of it. The store may be lost for a while. Throws
  /// HostLost if the others have gone or continue without this host, and Error if they refuse it.
  [[nodiscard]] std::variant<std::vector<Greeting>, EndOfHosts> form(Here& own);

  /// Reports a line for people (ElasticOptions::report).
  void report(const std::string& line);

 private:
  [[nodiscard]] std::variant<std::vector<Greeting>, EndOfHosts> form_with_store(Here& own);
  [[nodiscard]] bool is_interrupted() const {
    return options_.interrupted && options_.interrupted();
  }
  void report_waiting(const Decision& decision);

  const ElasticOptions& options_;
  RunStore& store_;
  Heartbeat& heartbeat_;
  Clock::time_point last_report_{};
};

}  // namespace rubato::hosts_detail
