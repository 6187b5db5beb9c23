#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/availability.hpp>
#include <rubato/steps/trace.hpp>

namespace rubato {

struct Strategy;          // base/spec.hpp
class StepOfDeviceCount;  // steps/availability.hpp

/// What --trace accepts besides generators (availability_generators()).
[[nodiscard]] std::vector<Strategy> trace_sources();
/// All that it accepts, for descriptions: "FILE|N|elastic|GENERATOR".
[[nodiscard]] std::string trace_values();

/// What --trace names. Parsed<TraceChoice> throws Error for a number that is no batch size and for
/// a generator whose arguments are wrong; everything else may name a file.
struct TraceChoice {
  enum class Kind {
    elastic,    ///< the built-in trace
    constant,   ///< the same batch size at every step
    generator,  ///< of devices over time
    file,       ///< of steps, or of devices over time
  };
  Kind kind = Kind::file;
  /// Of a constant one, in samples.
  std::int64_t batch_size = 0;
  /// Empty unless it is a file.
  std::optional<std::filesystem::path> file{};
  /// These columns of a file count as devices.
  DeviceColumns columns{};

  /// Whether it is the same trace wherever and whenever it is read.
  [[nodiscard]] bool is_built_in() const { return kind == Kind::elastic || kind == Kind::constant; }
};

/// A file as --trace and `rubato trace` take it: "PATH" or "PATH,column=NAME". Throws Error for
/// other arguments.
struct TraceFile {
  std::filesystem::path path{};
  DeviceColumns columns{};
};
[[nodiscard]] TraceFile parse_trace_file(const std::string& text);

/// The text of --trace with its file mapped by `map`; it still names a file, whatever it is called.
[[nodiscard]] std::string map_trace(
    const Parsed<TraceChoice>& trace,
    const std::function<std::filesystem::path(const std::filesystem::path&)>& map);

/// Throws Error for what parse_availability_steps() rejects.
void require_availability_steps(const std::string& text);

/// Makes or reads what a --trace names. `end` is what the user wants to follow it; without it the
/// built-in trace cycles, and everything else ends with an error. A constant has no end to speak
/// of. Throws Error, with the file and line where there is one, or `place` before the message.
[[nodiscard]] std::variant<Trace, Availability> load_trace_or_availability(
    const Parsed<TraceChoice>& trace, std::optional<TraceEnd> end, std::string_view place);

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

}  // namespace rubato
