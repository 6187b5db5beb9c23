#pragma once

#include <map>
#include <optional>
#include <string>

#include "c10d/members.hpp"
#include "c10d/process_name.hpp"
#include "c10d/store.hpp"

namespace rubato::c10d_hosts_detail {

/// From one sign of life to the next, and how long a host without one is waited for.
inline constexpr milliseconds kBeat{250};
inline constexpr milliseconds kSilence{5000};

/// What a host says last.
inline constexpr const char* kLeft = "left";

// Of a host in the store.

[[nodiscard]] std::string life_key(HostNumber host);
[[nodiscard]] std::string process_key(HostNumber host);
[[nodiscard]] std::string greeting_key(HostNumber host);
[[nodiscard]] std::string proof_key(HostNumber host);
[[nodiscard]] std::string refusal_key(HostNumber host);
/// How many there have been.
inline constexpr const char* kArrivals = "arrivals";

/// Sees which hosts are there, by what they leave in the store and, on this machine, by their
/// processes.
class Watch {
 public:
  enum class Life {
    alive,
    gone,
    /// Neither is seen yet.
    unknown,
  };

  explicit Watch(Store& store) : store_(store) {}

  /// Throws Error where the store does not answer.
  [[nodiscard]] Life life_of(HostNumber host);
  /// When this first looked for it.
  [[nodiscard]] Clock::time_point first_look(HostNumber host) { return seen_of(host).first_look; }

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
  std::map<HostNumber, Seen> seen_;
};

}  // namespace rubato::c10d_hosts_detail
