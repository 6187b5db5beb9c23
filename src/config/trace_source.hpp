#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/trace/trace.hpp>

namespace rubato {

struct Strategy;  // core/family.hpp

/// What --trace accepts.
[[nodiscard]] std::vector<Strategy> trace_sources();
[[nodiscard]] std::vector<std::string_view> trace_names();

/// The trace that --trace names: "elastic" (built in), a batch size (the same at every step), or a
/// CSV file. `end` is what the user wants to follow its last row; without it a file ends with an
/// error and the built-in trace cycles. A constant has no end to speak of. Throws Error, with the
/// file and line where there is one.
[[nodiscard]] Trace load_trace(const std::string& spec, std::optional<TraceEnd> end);

/// How many cores a trace has, where `otherwise` is for the steps for which it does not say.
struct CoreRange {
  std::int64_t fewest = 0;
  std::int64_t most = 0;
  /// Whether the trace says for every step.
  bool all_said = true;
};
[[nodiscard]] CoreRange cores_of(const Trace& trace, std::int64_t otherwise);

/// The file that `spec` names; empty for "elastic" and for a number.
[[nodiscard]] std::optional<std::filesystem::path> trace_file(const std::string& spec);

}  // namespace rubato
