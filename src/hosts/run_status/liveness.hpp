#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rubato::hosts_detail {

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

/// Progress of a host, which it reports with each sign of life. It is shown to whoever looks at the
/// run, and decides which hosts may open a stopped run again: those that bring a checkpoint of as
/// many steps (RunStore::reported_steps()).
struct HostProgress {
  /// Steps that it has done; empty if it has no state.
  std::optional<std::int64_t> steps{};
  /// Seconds since 1970 by its own clock: when it came under its number, and when it reported this.
  std::int64_t came = 0;
  std::int64_t reported = 0;

  friend bool operator==(const HostProgress&, const HostProgress&) = default;
};

/// The current time, in seconds since 1970.
[[nodiscard]] std::int64_t seconds_since_1970();

[[nodiscard]] std::string text_of(const HostProgress& progress);
/// Empty if the text is not a progress.
[[nodiscard]] std::optional<HostProgress> parse_progress(std::string_view text);

}  // namespace rubato::hosts_detail
