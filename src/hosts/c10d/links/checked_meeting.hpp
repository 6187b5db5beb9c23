#pragma once

#include <rubato/hosts/c10d_hosts.hpp>

namespace rubato::c10d_hosts_detail {

inline constexpr int kMaxPort = 65'535;

/// Throws Error where an option is out of its range.
void check_meeting(const C10dOptions& options);

/// Of hosts that come and go: these, with a rank of 0. Throws Error.
[[nodiscard]] ElasticOptions checked_elastic(ElasticOptions options);

}  // namespace rubato::c10d_hosts_detail
