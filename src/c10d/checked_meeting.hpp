#pragma once

#include <rubato/c10d/c10d_hosts.hpp>

namespace rubato::c10d_hosts_detail {

inline constexpr int kMaxPort = 65'535;

/// Throws Error where an option is out of its range.
void check_meeting(const C10dOptions& options);

}  // namespace rubato::c10d_hosts_detail
