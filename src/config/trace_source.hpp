#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <rubato/config/run_configuration.hpp>
#include <rubato/trace/availability.hpp>
#include <rubato/trace/trace.hpp>

namespace rubato {

struct Strategy;          // core/family.hpp
class StepOfDeviceCount;  // trace/availability_steps.hpp

/// What --trace accepts besides generators (availability_generators()).
[[nodiscard]] std::vector<Strategy> trace_sources();
/// All that it accepts, for descriptions: "FILE|N|elastic|GENERATOR".
[[nodiscard]] std::string trace_values();
/// Throws Error for a generator whose arguments are wrong; everything else may name a file.
void require_trace_name(const std::string& spec);
/// Throws Error for what parse_availability_steps() rejects.
void require_availability_steps(const std::string& text);

/// What a --trace of that text names: "elastic" (built in), a batch size (the same at every step),
/// a generator, or a file with either. `end` is what the user wants to follow it; without it the
/// built-in trace cycles, and everything else ends with an error. A constant has no end to speak
/// of. Throws Error, with the file and line where there is one, or `place` before the message.
[[nodiscard]] std::variant<Trace, Availability> load_trace_or_availability(
    const std::string& spec, std::optional<TraceEnd> end, std::string_view place);

/// The trace of a run: that of --trace, where it is an availability with the steps that
/// --availability makes of it. Throws Error as above, and for an --availability that would do
/// nothing.
[[nodiscard]] Trace load_trace(const RunConfiguration& run);

/// What a run takes its steps from: a trace or, where the devices are those of modelled time, the
/// availability itself.
using RunSteps = std::variant<Trace, Availability>;
/// Throws Error as load_trace() does, and for an --availability that says how long steps last.
[[nodiscard]] RunSteps load_run_steps(const RunConfiguration& run);
/// The same of what its --trace names.
[[nodiscard]] RunSteps run_steps_of(const RunConfiguration& run, RunSteps loaded);
/// "trace.csv": where they are from.
[[nodiscard]] const std::string& source_of(const RunSteps& steps);

/// The step that the devices of a run in modelled time take, as its --availability says.
[[nodiscard]] StepOfDeviceCount step_of_devices(const Availability& availability,
                                                const RunConfiguration& run);
/// StepOfDeviceCount::scaling() of a run's steps.
[[nodiscard]] std::string scaling_of(const RunSteps& steps, const RunConfiguration& run);

/// How many cores a trace has, where `otherwise` is for the steps for which it does not say.
struct CoreRange {
  std::int64_t fewest = 0;
  std::int64_t most = 0;
  /// Whether the trace says for every step.
  bool all_said = true;
};
[[nodiscard]] CoreRange cores_of(const Trace& trace, std::int64_t otherwise);
[[nodiscard]] CoreRange cores_of(const RunSteps& steps, const RunConfiguration& run);

/// Whether `spec` is "elastic" or a number, which is the same trace wherever and whenever it is
/// read.
[[nodiscard]] bool is_built_in(const std::string& spec);
/// The file that `spec` names; empty for what is built in and for a generator.
[[nodiscard]] std::optional<std::filesystem::path> trace_file(const std::string& spec);

}  // namespace rubato
