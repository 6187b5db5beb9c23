#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rubato::c10d_hosts_detail {

/// How far a host has come, as it tells with each sign of life: for whoever looks at the run. No
/// host decides by it.
struct HostProgress {
  /// Steps that it has done; empty where it has no state.
  std::optional<std::int64_t> steps{};
  /// By its own clock, in seconds since 1970: when it came under its number, and when it told this.
  std::int64_t came = 0;
  std::int64_t told = 0;

  friend bool operator==(const HostProgress&, const HostProgress&) = default;
};

/// Now, in seconds since 1970.
[[nodiscard]] std::int64_t seconds_since_1970();

[[nodiscard]] std::string text_of(const HostProgress& progress);
/// Empty for what is no such text.
[[nodiscard]] std::optional<HostProgress> parse_progress(std::string_view text);

}  // namespace rubato::c10d_hosts_detail
