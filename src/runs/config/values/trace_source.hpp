#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/availability.hpp>
#include <rubato/steps/trace.hpp>

#include "base/core/file.hpp"

namespace rubato {

struct Strategy;          // base/spec.hpp
class StepOfDeviceCount;  // steps/availability.hpp

/// The values that --trace accepts besides generators (availability_generators()).
[[nodiscard]] std::vector<Strategy> trace_sources();
/// All values that it accepts, for descriptions: "FILE|N|elastic|GENERATOR".
[[nodiscard]] std::string trace_values();

struct TraceContent;  // trace_source.cpp

struct ZoneTrace;

/// The trace that --trace names. Parsed<TraceChoice> throws Error for a number that is not a batch
/// size and for a generator with invalid arguments; everything else may name a file.
struct TraceChoice {
  enum class Kind {
    elastic,    ///< the built-in trace
    constant,   ///< the same batch size at every step
    generator,  ///< devices over time, generated
    file,       ///< steps, or devices over time, in a file
    zones,      ///< devices over time in several zones
  };
  Kind kind = Kind::file;
  /// The batch size of a constant trace, in samples.
  std::int64_t batch_size = 0;
  /// Set only if it is a file, or if the zones are the columns of one.
  std::optional<std::filesystem::path> file{};
  /// The columns of a file that count as devices, or as zones.
  DeviceColumns columns{};
  /// The zones, unless they are columns.
  std::vector<ZoneTrace> zones;
  /// The content of the file once it has been read, for all who have this choice.
  std::shared_ptr<TraceContent> content{};

  /// Whether it is the same trace wherever and whenever it is read.
  [[nodiscard]] bool is_built_in() const { return kind == Kind::elastic || kind == Kind::constant; }
};

/// A zone, and a file or a generator of its devices over time.
struct ZoneTrace {
  std::string name{};
  Parsed<TraceChoice> trace{};
};

/// The files of a trace, in their order.
[[nodiscard]] std::vector<std::filesystem::path> files_of(const TraceChoice& trace);

/// The text of zones, "zone:a=one.csv,b=spot:seed=1".
[[nodiscard]] std::string text_of_zones(const std::vector<ZoneTrace>& zones);

/// A file as --trace and `rubato trace` accept it: "PATH" or "PATH,column=NAME". parse_trace_file()
/// throws Error for other arguments.
struct TraceFile {
  std::filesystem::path path{};
  DeviceColumns columns{};
};
[[nodiscard]] TraceFile parse_trace_file(const std::string& text);

/// The text of --trace with its files mapped by `map`; it still names files, whatever their names.
[[nodiscard]] std::string map_trace(const std::string& text, const PathMap& map);

/// The source of a run's steps: a trace or, in modelled time, the availability of devices.
using RunSteps = std::variant<Trace, Zones>;

/// Generates or reads the trace that --trace names; a file is read once for all copies of `trace`
/// and all ends, as it may be a pipe. `end` says what follows its last step; without it the
/// built-in trace is repeated, and everything else ends with an error. A constant trace has no end.
/// Throws Error with the file and line if there is a file, else with `place` before the message.
[[nodiscard]] RunSteps load_steps(const Parsed<TraceChoice>& trace, std::optional<TraceEnd> end,
                                  std::string_view place);

/// The steps of a run: in real time a trace, that of --trace or, if that is an availability, the
/// steps that --availability makes of it. Throws Error as above, for an --availability that would
/// have no effect and, in modelled time, for one that says how long steps last.
[[nodiscard]] RunSteps load_run_steps(const RunConfiguration& run);
/// The same for what its --trace names, which is loaded already.
[[nodiscard]] RunSteps run_steps_of(const RunConfiguration& run, RunSteps loaded);
/// Returns notes on how the devices over time were read, a line each: which columns count, and when
/// zones of several files begin. `loaded` is what load_steps() made of `trace`.
[[nodiscard]] std::vector<std::string> reading_notes(const TraceChoice& trace,
                                                     const RunSteps& loaded);
/// The same for the trace of a run; a file is not read again.
[[nodiscard]] std::vector<std::string> reading_notes(const RunConfiguration& run);
/// The origin of the steps, such as "trace.csv".
[[nodiscard]] const std::string& source_of(const RunSteps& steps);

/// Maps a number of devices to the step that a run in modelled time takes with them, by its
/// --availability.
[[nodiscard]] StepOfDeviceCount step_of_devices(const Zones& zones, const RunConfiguration& run);
/// StepOfDeviceCount::scaling() of a run's steps.
[[nodiscard]] std::string scaling_of(const RunSteps& steps, const RunConfiguration& run);

/// The numbers of cores of a trace's steps; `otherwise` is that of steps for which the trace does
/// not say.
struct CoreRange {
  std::int64_t fewest = 0;
  std::int64_t most = 0;
  /// Whether the trace says it for every step.
  bool all_said = true;
};
[[nodiscard]] CoreRange cores_of(const Trace& trace, std::int64_t otherwise);
[[nodiscard]] CoreRange cores_of(const RunSteps& steps, const RunConfiguration& run);

}  // namespace rubato
