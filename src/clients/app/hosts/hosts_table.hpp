#pragma once

#include <string>

#include "base/core/text/wrapped.hpp"
#include "hosts/run_status/run_status.hpp"

namespace rubato::app {

/// How a run stands, for people: what is known of all of it, and a row for each host.
[[nodiscard]] std::string hosts_text(const c10d_hosts_detail::RunStatus& status, LineWidth width);
/// The same as JSON.
[[nodiscard]] std::string hosts_json(const c10d_hosts_detail::RunStatus& status);

}  // namespace rubato::app
