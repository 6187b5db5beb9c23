// The text of --trace is parsed without reading a file: kind_of() tells zones, the built-in trace,
// batch sizes and generators by their form, and any other text names a file. The parser asks
// whether files exist, because paths may contain the commas that separate arguments and zones.
// load_steps() keeps the content of a file, under a mutex, in the choice that all copies share;
// what follows its end is added to a copy (with_end()). Whether a file has steps or devices over
// time is known once it has been read; run_steps_of() makes steps of devices unless the run is in
// modelled time.

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
#include "base/core/seconds.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "runs/config/allowed.hpp"

namespace rubato {

struct TraceContent {
  std::mutex mutex;
  // The steps, with TraceEnd::error; empty if the file has not been read.
  std::optional<RunSteps> read;
};

namespace {

constexpr std::string_view kElastic = "elastic";
constexpr std::string_view kZones = "zone:";

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

constexpr std::array<TraceRow, 4> kTraces{
    {{"FILE",
      "a file with the header 'step,batchsize' or 'step,batchsize,cores' and a row for each step, "
      "or with the availability of devices over time, as --availability makes steps of it; where "
      "it has several columns of devices, FILE,column=NAME or FILE,zone=TEXT",
      read_columns},
     {"zone:FILE",
      "a file in which each column of devices is a zone, of which training is in one at a time; "
      "FILE,zone=TEXT for some of them, and zone:NAME=FILE,NAME=GENERATOR for zones with a trace "
      "each"},
     {"N", "N samples at every step"},
     {kElastic, "the built-in trace, again and again"}}};

// The name in a spec: "spot" in "spot:seed=1".
std::string_view name_in(std::string_view spec) {
  return spec.substr(0, spec.find(':'));
}

TraceChoice::Kind kind_of(const std::string& text) {
  if (text.starts_with(kZones)) return TraceChoice::Kind::zones;
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

// True if `key` is an argument of a file or a generator, so that it does not name another zone.
bool takes(const std::string& trace, std::string_view key) {
  if (!is_generator(trace)) return key == "column" || key == "zone";
  const std::vector<Strategy> generators = availability_generators();
  const auto& arguments = find_row("generator", name_in(trace), generators).arguments;
  return std::ranges::find(arguments, key, &Argument::name) != arguments.end();
}

// The zones of a text such as "a=one.csv,b=spot:most=8,seed=1"; empty if it does not begin with a
// zone. What the file or generator before it takes, or what has no name, belongs to that.
std::vector<ZoneTrace> zones_in(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> texts;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, text.find(','));
    const std::string_view key = piece.substr(0, piece.find('='));
    const bool is_named = key.size() < piece.size() && key.find('/') == std::string_view::npos;
    if (texts.empty() && !is_named) return {};
    if (is_named && (texts.empty() || !takes(texts.back().second, key))) {
      texts.emplace_back(key, piece.substr(key.size() + 1));
    } else {
      texts.back().second += fmt::format(",{}", piece);
    }
    text.remove_prefix(std::min(piece.size() + 1, text.size()));
    // A path may have commas in it.
    for (std::size_t end = text.size(); end != std::string_view::npos && end > 0;
         end = text.rfind(',', end - 1)) {
      const std::string path = fmt::format("{},{}", texts.back().second, text.substr(0, end));
      if (!is_there(path)) continue;
      texts.back().second = path;
      text.remove_prefix(std::min(end + 1, text.size()));
      break;
    }
  }
  std::vector<ZoneTrace> zones;
  for (const auto& [name, trace] : texts) {
    const TraceChoice::Kind kind = kind_of(trace);
    if (trace.empty() ||
        (kind != TraceChoice::Kind::file && kind != TraceChoice::Kind::generator)) {
      throw_error("zone {}: '{}' has no devices over time; accepted: a file or a generator", name,
                  trace);
    }
    zones.push_back({.name = name, .trace = trace});
  }
  return zones;
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
  TraceChoice choice;
  choice.kind = kind_of(text);
  if (choice.kind == TraceChoice::Kind::constant) choice.batch_size = batch_size_of(text);
  if (choice.kind == TraceChoice::Kind::generator) require_generator(text);
  const bool zones = choice.kind == TraceChoice::Kind::zones;
  const std::string rest = zones ? text.substr(kZones.size()) : text;
  if (zones && !is_there(rest)) choice.zones = zones_in(rest);
  if (choice.kind == TraceChoice::Kind::file || (zones && choice.zones.empty())) {
    TraceFile file = parse_trace_file(rest);
    if (zones && !file.columns.column.empty()) {
      throw_error("{}: one column is one zone; accepted: FILE or FILE,zone=TEXT", text);
    }
    choice.file = std::move(file.path);
    choice.columns = std::move(file.columns);
    choice.content = std::make_shared<TraceContent>();
  }
  return std::make_shared<const TraceChoice>(std::move(choice));
}

std::string text_of_zones(const std::vector<ZoneTrace>& zones) {
  std::string text;
  for (const ZoneTrace& zone : zones) {
    text += fmt::format("{}{}={}", text.empty() ? kZones : ",", zone.name, zone.trace.text());
  }
  return text;
}

std::vector<std::filesystem::path> files_of(const TraceChoice& trace) {
  std::vector<std::filesystem::path> files;
  if (trace.file) files.push_back(*trace.file);
  for (const ZoneTrace& zone : trace.zones) {
    if (zone.trace->file) files.push_back(*zone.trace->file);
  }
  return files;
}

std::string map_trace(const std::string& text, const PathMap& map) {
  const Parsed<TraceChoice> trace = text;
  if (!trace->zones.empty()) {
    std::vector<ZoneTrace> zones = trace->zones;
    for (ZoneTrace& zone : zones) zone.trace = map_trace(zone.trace.text(), map);
    return text_of_zones(zones);
  }
  if (!trace->file) return text;
  const std::size_t prefix = trace->kind == TraceChoice::Kind::zones ? kZones.size() : 0;
  const std::filesystem::path mapped = map(*trace->file);
  // A file called "128", "elastic" or "spot" stays a file.
  const bool is_file = kind_of(mapped.string()) == TraceChoice::Kind::file;
  return text.substr(0, prefix) + (is_file ? mapped : "." / mapped).string() +
         text.substr(prefix + trace->file->string().size());
}

TraceFile parse_trace_file(const std::string& text) {
  // If a file of this name exists, the whole text is its path.
  const bool is_path = is_there(text);
  if (!is_path && text.starts_with(kZones)) {
    throw_error(
        "{}: zones, where the devices of one are needed; accepted: FILE, FILE,column=NAME or "
        "FILE,zone=TEXT",
        text);
  }
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

namespace {

Zones load_zones(const Parsed<TraceChoice>& trace, std::optional<TraceEnd> end,
                 std::string_view place) {
  std::vector<Zone> zones;
  for (const ZoneTrace& zone : trace->zones) {
    RunSteps loaded = load_steps(zone.trace, end, place);
    if (const Trace* const steps = std::get_if<Trace>(&loaded)) {
      throw_error("{}zone {}: {} is a trace of steps; accepted: devices over time (docs/traces.md)",
                  place, zone.name, steps->source());
    }
    zones.push_back({.name = zone.name, .availability = std::get<Zones>(loaded).only()});
  }
  return {std::move(zones), trace.text()};
}

RunSteps steps_in(const std::filesystem::path& file, const DeviceColumns& columns) {
  return std::visit([](auto&& of) { return RunSteps(std::forward<decltype(of)>(of)); },
                    read_trace_or_availability(file, TraceEnd::error, columns));
}

RunSteps with_end(const RunSteps& steps, TraceEnd end) {
  if (const Trace* const trace = std::get_if<Trace>(&steps)) return trace->with_end(end);
  const auto& zones = std::get<Zones>(steps);
  // The only zone of a file that is not read as zones has no name.
  if (zones.all().front().name.empty()) return zones.only().with_end(end);
  std::vector<Zone> all = zones.all();
  for (Zone& zone : all) zone.availability = zone.availability.with_end(end);
  return Zones(std::move(all), zones.source());
}

}  // namespace

RunSteps load_steps(const Parsed<TraceChoice>& trace, std::optional<TraceEnd> end,
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
    case TraceChoice::Kind::zones:
      if (trace->zones.empty()) break;
      return load_zones(trace, end, place);
    case TraceChoice::Kind::file:
      break;
  }
  const std::lock_guard lock(trace->content->mutex);
  auto& read = trace->content->read;
  if (!read) {
    require_file(*trace->file, place);
    read = trace->kind == TraceChoice::Kind::zones
               ? read_zones(*trace->file, TraceEnd::error, trace->columns.zone)
               : steps_in(*trace->file, trace->columns);
  }
  return with_end(*read, end.value_or(TraceEnd::error));
}

RunSteps load_run_steps(const RunConfiguration& run) {
  return run_steps_of(run, load_steps(run.trace, run.on_trace_end, "--trace: "));
}

RunSteps run_steps_of(const RunConfiguration& run, RunSteps loaded) {
  require_availability(run, loaded);
  if (run.clock == Clock::modelled || std::holds_alternative<Trace>(loaded)) return loaded;
  const auto& zones = std::get<Zones>(loaded);
  if (zones.several()) {
    throw_error(
        "--trace {}: training moves between zones in modelled time; accepted: with --clock "
        "virtual",
        zones.source());
  }
  return to_steps(zones.only(), *run.availability->make(run.minibatch));
}

std::vector<std::string> reading_notes(const TraceChoice& trace, const RunSteps& loaded) {
  std::vector<std::string> notes;
  const auto* const zones = std::get_if<Zones>(&loaded);
  if (zones == nullptr) return notes;
  if (trace.kind == TraceChoice::Kind::zones && trace.zones.empty()) {
    notes.push_back(
        fmt::format("the zones are {}", first_names(vector_of(zones->all(), &Zone::name))));
    return notes;
  }
  const auto is_absolute = [](const Zone& zone) { return has_absolute_times(zone.availability); };
  const bool any_absolute = std::ranges::any_of(zones->all(), is_absolute);
  const bool any_later = std::ranges::any_of(
      zones->all(), [](const Zone& zone) { return zone.availability.origin().delay > 0; });
  std::vector<std::string> together;
  for (const Zone& zone : zones->all()) {
    const AvailabilityOrigin& origin = zone.availability.origin();
    const std::string place = zone.name.empty() ? "" : fmt::format("zone {}: ", zone.name);
    if (!origin.columns.empty()) {
      notes.push_back(
          fmt::format("{}the devices are those of {}", place, first_names(origin.columns)));
    }
    if (origin.delay > 0) {
      notes.push_back(
          fmt::format("{}its first sample is {:.6g} h after the beginning; until then it has no "
                      "devices",
                      place, origin.delay / kSecondsOfHour));
    }
    if (origin.start && !is_absolute(zone) && (any_absolute || !any_later)) {
      together.push_back(zone.name);
    }
  }
  if (!together.empty() && zones->several()) {
    notes.push_back(fmt::format("the times of zone{} {} are relative, so {} at the beginning",
                                together.size() == 1 ? "" : "s", first_names(together),
                                together.size() == 1 ? "it begins" : "they begin"));
  }
  return notes;
}

std::vector<std::string> reading_notes(const RunConfiguration& run) {
  // Generators have no columns and no clock.
  if (files_of(*run.trace).empty()) return {};
  return reading_notes(*run.trace, load_steps(run.trace, run.on_trace_end, "--trace: "));
}

const std::string& source_of(const RunSteps& steps) {
  return std::visit([](const auto& of) -> const std::string& { return of.source(); }, steps);
}

std::string scaling_of(const RunSteps& steps, const RunConfiguration& run) {
  if (const Trace* const trace = std::get_if<Trace>(&steps)) return trace->scaling();
  return step_of_devices(std::get<Zones>(steps), run).scaling();
}

StepOfDeviceCount step_of_devices(const Zones& zones, const RunConfiguration& run) {
  return {zones, *run.availability->make(run.minibatch)};
}

CoreRange cores_of(const RunSteps& steps, const RunConfiguration& run) {
  if (const Trace* const trace = std::get_if<Trace>(&steps)) return cores_of(*trace, run.cores);
  const auto& zones = std::get<Zones>(steps);
  const StepOfDeviceCount step_of = step_of_devices(zones, run);
  CoreRange range{.fewest = kMaxCores, .most = 1};
  for (const auto& [name, availability] : zones.all()) {
    for (const AvailabilityChange& change : availability.changes()) {
      const std::optional<TraceStep> step = step_of(change.devices);
      if (!step || !availability.lasts(change)) continue;
      range.fewest = std::min(range.fewest, *step->cores);
      range.most = std::max(range.most, *step->cores);
    }
  }
  range.fewest = std::min(range.fewest, range.most);
  return range;
}

}  // namespace rubato
