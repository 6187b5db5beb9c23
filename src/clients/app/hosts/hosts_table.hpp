#pragma once

#include <string>

#include "base/core/text/output_fields.hpp"
#include "base/core/text/text.hpp"
#include "hosts/run_status/run_status.hpp"

namespace rubato::app {

/// The state of a run as text: what is known about the run as a whole, and a row for each host.
[[nodiscard]] std::string hosts_text(const hosts_detail::RunStatus& status, LineWidth width);
/// The same as JSON.
[[nodiscard]] std::string hosts_json(const hosts_detail::RunStatus& status);
[[nodiscard]] JsonForm<hosts_detail::RunStatus> hosts_form();

}  // namespace rubato::app
