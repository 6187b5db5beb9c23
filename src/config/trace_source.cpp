#include "config/trace_source.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/core/choice.hpp>
#include <rubato/core/error.hpp>
#include <rubato/core/family.hpp>
#include <rubato/core/number.hpp>
#include <rubato/trace/availability_steps.hpp>
#include <rubato/trace/generators.hpp>

namespace rubato {

namespace {

constexpr std::string_view kElastic = "elastic";

struct TraceRow {
  std::string_view name;
  std::string_view help;
};

constexpr std::array<TraceRow, 3> kTraces{
    {{"FILE",
      "a file with the header 'step,batchsize' or 'step,batchsize,cores' and a row for each step, "
      "or with the availability of devices over time, as --availability makes steps of it"},
     {"N", "N samples at every step"},
     {kElastic, "the built-in trace, again and again"}}};

// "spot" of "spot:seed=1".
std::string_view name_in(std::string_view spec) {
  return spec.substr(0, spec.find(':'));
}

Trace constant_trace(const std::string& spec, std::string_view place) {
  try {
    return Trace::constant(parse_whole(spec, 1, kMaxBatchSize));
  } catch (const Error& error) {
    throw Error(fmt::format("{}{}, a file, a generator or {}", place, error.what(), kElastic));
  }
}

void require_file(const std::string& spec, const std::filesystem::path& file,
                  std::string_view place) {
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) return;
  const std::vector<Strategy> generators = availability_generators();
  std::vector<std::string_view> names = row_names(generators);
  names.push_back(kElastic);
  const std::string_view meant = nearest(name_in(spec), names);
  throw Error(fmt::format(
      "{}no such file as '{}'; {}accepted: a file with the header "
      "'step,batchsize[,cores]' or of availability (docs/traces.md), a batch "
      "size, {} or a generator (rubato list generators)",
      place, spec, meant.empty() ? "" : fmt::format("did you mean '{}'? ", meant), kElastic));
}

}  // namespace

std::vector<Strategy> trace_sources() {
  return strategies_of(kTraces, [](const TraceRow&, Spec&) {});
}

std::string trace_values() {
  return fmt::format("{}|GENERATOR", fmt::join(row_names(kTraces), "|"));
}

void require_trace_name(const std::string& spec) {
  if (is_generator(spec)) require_generator(spec);
}

void require_availability_steps(const std::string& text) {
  static_cast<void>(parse_availability_steps(text, 1));
}

bool is_built_in(const std::string& spec) {
  return spec == kElastic || is_number(spec);
}

std::optional<std::filesystem::path> trace_file(const std::string& spec) {
  if (is_built_in(spec) || is_generator(spec)) return std::nullopt;
  return spec;
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

std::variant<Trace, Availability> load_trace_or_availability(const std::string& spec,
                                                             std::optional<TraceEnd> end,
                                                             std::string_view place) {
  if (spec == kElastic) {
    Trace trace = Trace::elastic();
    return end ? Trace(trace.steps(), *end, trace.source()) : trace;
  }
  if (is_generator(spec)) {
    try {
      return generate_availability(spec, end.value_or(TraceEnd::error));
    } catch (const Error& error) {
      throw Error(fmt::format("{}{}", place, error.what()));
    }
  }
  const std::optional<std::filesystem::path> file = trace_file(spec);
  if (!file) return constant_trace(spec, place);
  require_file(spec, *file, place);
  return read_trace_or_availability(*file, end.value_or(TraceEnd::error));
}

RunSteps load_run_steps(const RunConfiguration& run) {
  return run_steps_of(run, load_trace_or_availability(run.trace, run.on_trace_end, "--trace: "));
}

RunSteps run_steps_of(const RunConfiguration& run, RunSteps loaded) {
  if (const Trace* const trace = std::get_if<Trace>(&loaded)) {
    if (run.availability.empty()) return loaded;
    throw Error(
        fmt::format("--availability: {} says itself what every step is; accepted: with a "
                    "file of availability (docs/traces.md) or a generator (rubato list "
                    "generators)",
                    trace->source()));
  }
  const AvailabilitySteps steps = parse_availability_steps(run.availability, run.minibatch);
  if (run.clock == Clock::real) return to_steps(std::get<Availability>(loaded), steps);
  if (steps.seconds_per_step || steps.steps_per_sample) {
    throw Error(fmt::format(
        "--availability {}: in modelled time a step lasts as long as the cluster takes "
        "for it; accepted: without {}, or with --clock real",
        run.availability, steps.seconds_per_step ? "seconds-per-step" : "steps-per-sample"));
  }
  if (steps.on_zero != OnZero::drop) {
    throw Error(
        fmt::format("--availability {}: modelled time goes on without devices; accepted: without "
                    "on-zero (--on-idle says what follows), or with --clock real",
                    run.availability));
  }
  return loaded;
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
  return {availability, parse_availability_steps(run.availability, run.minibatch)};
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
