#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rubato::c10d_hosts_detail {

/// What tells this process from all others of all machines: the machine, since when it runs, the
/// process and since when that runs.
[[nodiscard]] std::string name_of_this_process();

/// By which number its machine knows the process that gave itself that name; empty for what is no
/// such name.
[[nodiscard]] std::optional<std::int64_t> id_of_process(std::string_view name);

enum class ProcessState {
  running,
  ended,
  /// It is on another machine, or in another namespace of processes.
  unknown,
};

/// Of the process that gave itself that name, seen from here.
[[nodiscard]] ProcessState state_of_process(std::string_view name);

}  // namespace rubato::c10d_hosts_detail
