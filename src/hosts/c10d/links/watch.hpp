#pragma once

#include <map>
#include <optional>
#include <string>

#include "hosts/c10d/membership/membership.hpp"
#include "hosts/c10d/store/store.hpp"
#include "hosts/run_status/process_name.hpp"
#include "hosts/run_status/run_keys.hpp"

namespace rubato::c10d_hosts_detail {

/// Sees which hosts of a run are alive, by their signs of life in the store and, on this machine,
/// by their processes.
class Watch {
 public:
  /// The store must outlive the watch.
  Watch(Store& store, RunKeys keys) : store_(store), keys_(std::move(keys)) {}

  /// Throws StoreLost.
  [[nodiscard]] Life life_of(HostNumber host);
  /// Time since this watch first looked for the host.
  [[nodiscard]] milliseconds looked_for(HostNumber host);

 private:
  struct Seen {
    Clock::time_point first_look;
    Clock::time_point last_sign;
    std::optional<std::string> sign;
    bool has_moved = false;
    bool is_gone = false;
    std::optional<std::string> process;
  };

  Seen& seen_of(HostNumber host);

  Store& store_;
  RunKeys keys_;
  std::map<HostNumber, Seen> seen_;
};

}  // namespace rubato::c10d_hosts_detail
