#include "trace_source.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/steps/availability.hpp>

#include "base/core/file.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "model_choice.hpp"
#include "runs/config/allowed.hpp"

namespace rubato {

struct TraceContent {
  std::mutex mutex;
  // The end that was asked for, and the steps; empty if the file has not been read.
  std::optional<std::pair<TraceEnd, std::variant<Trace, Availability>>> read;
};

namespace {

constexpr std::string_view kElastic = "elastic";

struct TraceRow {
  std::string_view name;
  std::string_view help;
  /// Reads its arguments; null if it has none.
  void (*read)(Spec& spec, DeviceColumns& columns) = nullptr;
};

void read_columns(Spec& spec, DeviceColumns& columns) {
  columns.column = spec.text("column", Unset{"the only one"}, "the name of a column of devices")
                       .value_or(std::string());
  columns.zone = spec.text("zone", Unset{"no columns are added up"},
                           "what the names of the columns to add up have in them, or all")
                     .value_or(std::string());
  if (!columns.column.empty())
    spec.refuse("zone", "nothing is added to a column; accepted: one of the two");
}

constexpr std::array<TraceRow, 3> kTraces{
    {{"FILE",
      "a file with the header 'step,batchsize' or 'step,batchsize,cores' and a row for each step, "
      "or with the availability of devices over time, as --availability makes steps of it; where "
      "it has several columns of devices, FILE,column=NAME or FILE,zone=TEXT",
      read_columns},
     {"N", "N samples at every step"},
     {kElastic, "the built-in trace, again and again"}}};

// The name in a spec: "spot" in "spot:seed=1".
std::string_view name_in(std::string_view spec) {
  return spec.substr(0, spec.find(':'));
}

TraceChoice::Kind kind_of(const std::string& text) {
  if (text == kElastic) return TraceChoice::Kind::elastic;
  if (is_number(text)) return TraceChoice::Kind::constant;
  return is_generator(text) ? TraceChoice::Kind::generator : TraceChoice::Kind::file;
}

std::int64_t batch_size_of(const std::string& text) {
  try {
    return parse_whole(text, 1, kMaxBatchSize);
  } catch (const Error& error) {
    throw_error("{}, a file, a generator or {}", error.what(), kElastic);
  }
}

void require_file(const std::filesystem::path& file, std::string_view place) {
  if (is_there(file)) return;
  require_visible(place, file);
  const std::string spec = file.string();
  const std::vector<Strategy> generators = availability_generators();
  std::vector<std::string_view> names = row_names(generators);
  names.push_back(kElastic);
  const std::string_view meant = nearest(name_in(spec), names);
  throw_error(
      "{}no such file as '{}'; {}accepted: a file with the header 'step,batchsize[,cores]' or of "
      "availability (docs/traces.md), a batch size, {} or a generator (rubato list generators)",
      place, short_line(spec), meant.empty() ? "" : fmt::format("did you mean '{}'? ", meant),
      kElastic);
}

}  // namespace

std::vector<Strategy> trace_sources() {
  return strategies_of(kTraces, [](const TraceRow& row, Spec& spec) {
    DeviceColumns ignored;
    if (row.read != nullptr) row.read(spec, ignored);
  });
}

std::string trace_values() {
  return fmt::format("{}|GENERATOR", fmt::join(row_names(kTraces), "|"));
}

template <>
std::shared_ptr<const TraceChoice> Parsed<TraceChoice>::parse(const std::string& text,
                                                              const Extensions& /*own*/) {
  TraceChoice choice{.kind = kind_of(text)};
  if (choice.kind == TraceChoice::Kind::constant) choice.batch_size = batch_size_of(text);
  if (choice.kind == TraceChoice::Kind::generator) require_generator(text);
  if (choice.kind == TraceChoice::Kind::file) {
    TraceFile file = parse_trace_file(text);
    choice.file = std::move(file.path);
    choice.columns = std::move(file.columns);
    choice.content = std::make_shared<TraceContent>();
  }
  return std::make_shared<const TraceChoice>(std::move(choice));
}

std::string map_trace(
    const std::string& text,
    const std::function<std::filesystem::path(const std::filesystem::path&)>& map) {
  const Parsed<TraceChoice> trace = text;
  if (!trace->file) return text;
  const std::filesystem::path mapped = map(*trace->file);
  // A file called "128", "elastic" or "spot" stays a file.
  const bool is_file = kind_of(mapped.string()) == TraceChoice::Kind::file;
  return (is_file ? mapped : "." / mapped).string() + text.substr(trace->file->string().size());
}

TraceFile parse_trace_file(const std::string& text) {
  // If a file of this name exists, the whole text is its path.
  const bool is_path = is_there(text);
  const std::size_t end = is_path ? text.size() : arguments_begin(text);
  TraceFile file{.path = text.substr(0, end)};
  Spec spec(end < text.size() ? fmt::format("FILE:{}", text.substr(end + 1)) : "FILE");
  read_columns(spec, file.columns);
  spec.finish();
  return file;
}

CoreRange cores_of(const Trace& trace, std::int64_t otherwise) {
  CoreRange range{.fewest = kMaxCores, .most = 1};
  for (const TraceStep& step : trace.steps()) {
    const std::int64_t cores = step.cores.value_or(otherwise);
    range.fewest = std::min(range.fewest, cores);
    range.most = std::max(range.most, cores);
    range.all_said = range.all_said && step.cores.has_value();
  }
  return range;
}

std::variant<Trace, Availability> load_trace_or_availability(const Parsed<TraceChoice>& trace,
                                                             std::optional<TraceEnd> end,
                                                             std::string_view place) {
  switch (trace->kind) {
    case TraceChoice::Kind::elastic: {
      Trace elastic = Trace::elastic();
      return end ? Trace(elastic.steps(), *end, elastic.source()) : elastic;
    }
    case TraceChoice::Kind::constant:
      return Trace::constant(trace->batch_size);
    case TraceChoice::Kind::generator:
      try {
        return generate_availability(trace.text(), end.value_or(TraceEnd::error));
      } catch (const Error& error) {
        throw_error("{}{}", place, error.what());
      }
    case TraceChoice::Kind::file:
      break;
  }
  const TraceEnd last = end.value_or(TraceEnd::error);
  const std::lock_guard lock(trace->content->mutex);
  auto& read = trace->content->read;
  if (!read || read->first != last) {
    require_file(*trace->file, place);
    read.emplace(last, read_trace_or_availability(*trace->file, last, trace->columns));
  }
  return read->second;
}

RunSteps load_run_steps(const RunConfiguration& run) {
  return run_steps_of(run, load_trace_or_availability(run.trace, run.on_trace_end, "--trace: "));
}

RunSteps run_steps_of(const RunConfiguration& run, RunSteps loaded) {
  require_availability(run, loaded);
  if (run.clock == Clock::modelled || std::holds_alternative<Trace>(loaded)) return loaded;
  return to_steps(std::get<Availability>(loaded), *run.availability->make(run.minibatch));
}

Trace load_trace(const RunConfiguration& run) {
  RunConfiguration real = run;
  real.clock = Clock::real;
  return std::get<Trace>(load_run_steps(real));
}

const std::string& source_of(const RunSteps& steps) {
  return std::visit([](const auto& of) -> const std::string& { return of.source(); }, steps);
}

std::string scaling_of(const RunSteps& steps, const RunConfiguration& run) {
  if (const Trace* const trace = std::get_if<Trace>(&steps)) return trace->scaling();
  return step_of_devices(std::get<Availability>(steps), run).scaling();
}

StepOfDeviceCount step_of_devices(const Availability& availability, const RunConfiguration& run) {
  return {availability, *run.availability->make(run.minibatch)};
}

CoreRange cores_of(const RunSteps& steps, const RunConfiguration& run) {
  if (const Trace* const trace = std::get_if<Trace>(&steps)) return cores_of(*trace, run.cores);
  const auto& availability = std::get<Availability>(steps);
  const StepOfDeviceCount step_of = step_of_devices(availability, run);
  CoreRange range{.fewest = kMaxCores, .most = 1};
  for (const AvailabilityChange& change : availability.changes()) {
    const std::optional<TraceStep> step = step_of(change.devices);
    if (!step || !availability.lasts(change)) continue;
    range.fewest = std::min(range.fewest, *step->cores);
    range.most = std::max(range.most, *step->cores);
  }
  range.fewest = std::min(range.fewest, range.most);
  return range;
}

}  // namespace rubato
