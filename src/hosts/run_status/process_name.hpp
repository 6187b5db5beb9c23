#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rubato::c10d_hosts_detail {

/// A name that no other process on any machine has: the machine and its start, the process and its
/// start.
[[nodiscard]] std::string name_of_this_process();

/// The process id in a name_of_this_process(); empty if the text is not such a name.
[[nodiscard]] std::optional<std::int64_t> id_of_process(std::string_view name);

enum class ProcessState {
  running,
  ended,
  /// The process is on another machine, or in another namespace of processes.
  unknown,
};

/// State of the process with that name, as seen from here.
[[nodiscard]] ProcessState state_of_process(std::string_view name);

}  // namespace rubato::c10d_hosts_detail
