// An operand is a trace of steps or devices over time (Zones, each with an Availability), and
// load() finds out which; a --format says that it is a file with devices. `import` and `generate`
// write devices as CSV, `convert` turns devices into steps by a policy of --availability, and
// `show` takes both kinds. With --out, the content goes to the file and a summary to stdout;
// without it, stdout has nothing but the content, and notes on how a file was read go to stderr.

#include <array>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/availability.hpp>

#include "base/core/file.hpp"
#include "base/core/terminal/terminal.hpp"
#include "base/core/throw_error.hpp"
#include "clients/app/commands.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/output.hpp"
#include "clients/app/line/run_options_line.hpp"
#include "runs/config/values/trace_source.hpp"
#include "trace_views.hpp"

namespace rubato::app {

namespace {

// The options of all commands below `rubato trace`.
struct TraceCommandOptions {
  std::string operand;
  std::optional<AvailabilityFormat> format;
  std::string out;
  bool json = false;
};

constexpr std::string_view kFileOrGenerator =
    "a file, or a generator such as spot:most=64,seed=1 (rubato list generators)";

void define_operand(CommandLine& line, TraceCommandOptions& options, const std::string& value,
                    std::string_view help) {
  line.operands(OperandCount::one, value, std::string(help),
                [&](const std::string& text) { options.operand = text; });
}

void define_format(CommandLine& line, TraceCommandOptions& options) {
  line.choice("format", "the format of a file with devices over time (docs/traces.md)",
              "recognised", "format", kAvailabilityFormats, options.format);
}

void define_out(CommandLine& line, TraceCommandOptions& options) {
  line.text("out", "FILE", "write it to FILE, and a summary to the terminal", "stdout",
            options.out);
}

Availability read_file_in(const TraceCommandOptions& options) {
  const TraceFile file = parse_trace_file(options.operand);
  return read_availability(file.path, options.format, TraceEnd::error, file.columns);
}

// A given format means that the operand is a file.
RunSteps load(const TraceCommandOptions& options) {
  if (options.format) return read_file_in(options);
  return load_steps(options.operand, {}, "");
}

// Writes the content to --out and prints the summary, or prints the content if there is no --out.
void put(const TraceCommandOptions& options, const std::string& content,
         const std::string& summary) {
  if (options.out.empty()) {
    print_out(content);
    return;
  }
  write_file(options.out, content);
  print_text(summary);
}

void put(const TraceCommandOptions& options, const Availability& availability) {
  std::ostringstream csv;
  availability.write_csv(csv);
  put(options, csv.str(), summary_text(availability, output_width()));
}

int import_trace(std::span<const std::string> arguments) {
  TraceCommandOptions options;
  CommandLine line("rubato trace import",
                   "Reads devices over time from a file in any known format, and writes them as "
                   "CSV with the header 'seconds,count'.");
  define_operand(line, options, "FILE", "what to read");
  define_format(line, options);
  define_out(line, options);
  line.footer(
      "Examples:\n"
      "  rubato trace import events.csv --out availability.csv\n"
      "  rubato trace import measured.csv --format samples\n"
      "  rubato trace import gpus_of_zones.csv,zone=us-central1");
  line.parse(arguments);
  const Availability availability = read_file_in(options);
  // The summary, which names the columns, is printed with --out alone.
  if (options.out.empty()) {
    for (const std::string& note : reading_notes(TraceChoice(), availability)) {
      print_error(fmt::format("rubato trace import: {}\n", note));
    }
  }
  put(options, availability);
  return 0;
}

int generate_trace(std::span<const std::string> arguments) {
  TraceCommandOptions options;
  CommandLine line("rubato trace generate",
                   "Generates devices over time, and writes them as CSV with the header "
                   "'seconds,count'; the same text always gives the same devices.");
  define_operand(line, options, "GENERATOR", "what to make (rubato list generators)");
  define_out(line, options);
  line.footer(
      "Examples:\n"
      "  rubato trace generate daily:low=8,high=64 --out day.csv\n"
      "  rubato trace generate spot:most=64,life=2,bulk=8,seed=3");
  line.parse(arguments);
  put(options, generate_availability(options.operand));
  return 0;
}

int convert_trace(std::span<const std::string> arguments) {
  TraceCommandOptions options;
  RunConfiguration run;
  CommandLine line("rubato trace convert",
                   "Turns devices over time into a trace of steps, as training would, and writes "
                   "it as CSV with the header 'step,batchsize,cores'.");
  define_operand(line, options, "FILE|GENERATOR", kFileOrGenerator);
  define_format(line, options);
  define_out(line, options);
  define_run_options(line, run, Commands::convert);
  line.footer(
      "Examples:\n"
      "  rubato trace convert availability.csv --out trace.csv\n"
      "  rubato trace convert spot:seed=1 --availability strong:batch=1024,quantum=4");
  line.parse(arguments);
  const RunSteps loaded = load(options);
  if (const Trace* trace = std::get_if<Trace>(&loaded)) {
    throw_error("{} is a trace of steps already; accepted: {}", trace->source(),
                "devices over time (docs/traces.md)");
  }
  const Trace trace =
      to_steps(std::get<Zones>(loaded).only(), *run.availability->make(run.minibatch));
  put(options, trace.to_csv(), summary_text(trace, output_width()));
  return 0;
}

int show_trace(std::span<const std::string> arguments) {
  TraceCommandOptions options;
  CommandLine line("rubato trace show",
                   "Shows devices over time, or the batch sizes of a trace: a summary and a plot.");
  define_operand(line, options, "FILE|GENERATOR", kFileOrGenerator);
  define_format(line, options);
  line.flag("json", "print the summary as JSON, and no plot", options.json);
  line.footer(
      "Examples:\n"
      "  rubato trace show availability.csv\n"
      "  rubato trace show walk:start=16,seed=4 --json");
  line.parse(arguments);
  const RunSteps loaded = load(options);
  if (options.json) {
    print_out(std::visit([](const auto& it) { return summary_json(it); }, loaded));
    return 0;
  }
  const LineWidth width = output_width();
  const auto show = [&](const auto& it) {
    print_out(summary_text(it, width));
    print_out(fmt::format("\n{}", text_plot(timeline_of(it), speaks_utf8(), width)));
  };
  if (const Trace* const trace = std::get_if<Trace>(&loaded)) {
    show(*trace);
    return 0;
  }
  const auto& zones = std::get<Zones>(loaded);
  for (const Zone& zone : zones.all()) {
    if (&zone != &zones.all().front()) print_out("\n");
    if (zones.several()) print_out(fmt::format("zone {}\n", zone.name));
    show(zone.availability);
  }
  return 0;
}

constexpr std::array kTraceCommands{
    Command{"import", "read devices over time from a file, write them as CSV", import_trace},
    Command{"generate", "generate devices over time: spot markets, cycles, walks", generate_trace},
    Command{"convert", "turn devices over time into a trace of steps", convert_trace},
    Command{"show", "a summary and a plot of a trace, or of devices over time", show_trace}};

}  // namespace

constinit const CommandGroup kTrace{
    .name = "rubato trace",
    .description =
        "Reads, generates, converts and shows traces, and the availability of devices "
        "over time behind them.",
    .kind = "command",
    .commands = kTraceCommands,
    .footer = "`rubato trace COMMAND --help` says more; docs/traces.md has the formats."};

}  // namespace rubato::app
