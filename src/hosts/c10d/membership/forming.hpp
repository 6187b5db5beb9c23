#pragma once

#include <string>
#include <variant>
#include <vector>

#include <rubato/hosts/c10d_hosts.hpp>

#include "hosts/c10d/links/beacon.hpp"
#include "hosts/c10d/store/run_store.hpp"
#include "hosts/run_status/greeting.hpp"
#include "membership.hpp"

namespace rubato::c10d_hosts_detail {

/// For a connection with the store, or the hosts of a generation.
inline constexpr milliseconds kConnection{10'000};

/// How a host comes to have its place in the next generation: it does what decide() says. It is not
/// connected with the others then.
class Forming {
 public:
  /// All of them outlive it.
  Forming(const ElasticOptions& options, RunStore& store, Beacon& beacon)
      : options_(options), store_(store), beacon_(beacon) {}

  /// What the hosts of the generation have said of themselves, or how the run has ended. `own` is
  /// told to the others, and emptied where they are ahead of it. The store may be lost for a while.
  /// Throws HostLost where the others have gone, or go on without this host, and Error where they
  /// refuse it.
  [[nodiscard]] std::variant<std::vector<Greeting>, RunEnd> form(Here& own);

  /// In a line, what a person should know.
  void tell(const std::string& line);

 private:
  [[nodiscard]] std::variant<std::vector<Greeting>, RunEnd> form_with_store(Here& own);
  [[nodiscard]] bool is_interrupted() const {
    return options_.interrupted && options_.interrupted();
  }
  void tell_of_waiting(const Decision& decision);

  const ElasticOptions& options_;
  RunStore& store_;
  Beacon& beacon_;
  Clock::time_point last_told_{};
};

}  // namespace rubato::c10d_hosts_detail
