#pragma once

#include <rubato/hosts/c10d_hosts.hpp>

namespace rubato::c10d_hosts_detail {

inline constexpr int kMaxPort = 65'535;

/// Throws Error if an option is out of its range.
void check_meeting(const C10dOptions& options);

/// Returns the options of hosts that come and go, with a rank of 0. Throws Error if one is out of
/// its range.
[[nodiscard]] ElasticOptions checked_elastic(ElasticOptions options);

}  // namespace rubato::c10d_hosts_detail
