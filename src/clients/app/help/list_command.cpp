// This file only lays out what families(), record_infos() and the forms of the commands' JSON
// (base/core/text/output_fields.hpp) say, as text or as JSON. The arguments of all strategies of a
// family are formatted by one TextTable, so that their columns are aligned, and its rows are then
// distributed among the strategies. Plug-ins are loaded before the operands are read, so their
// strategies are listed like the built-in ones.

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <rubato/runs/run_configuration.hpp>

#include "base/core/text/json.hpp"
#include "base/core/text/output_fields.hpp"
#include "base/core/text/text.hpp"
#include "base/core/text/text_table.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "clients/app/bench_output.hpp"
#include "clients/app/commands.hpp"
#include "clients/app/hosts/hosts_table.hpp"
#include "clients/app/inputs/failures.hpp"
#include "clients/app/inputs/forecasts.hpp"
#include "clients/app/inputs/trace_views.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/output.hpp"
#include "clients/app/line/run_options_line.hpp"
#include "clients/app/past/past_commands.hpp"
#include "runs/diff/diff_report.hpp"
#include "runs/doctor/findings.hpp"
#include "runs/report/report_schemas.hpp"
#include "runs/whatif/whatif.hpp"

namespace rubato::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kIndent = 4;
constexpr std::string_view kRecords = "records";
constexpr std::string_view kSchemas = "schemas";

// The text in the column of the defaults.
std::string shown_default(const Argument& argument) {
  if (!argument.example.empty()) return "required";
  return argument.fallback.empty() ? argument.unset : argument.fallback;
}

std::string shown_values(const Argument& argument) {
  if (argument.example.empty()) return argument.accepted;
  return fmt::format("{}, such as {}", argument.accepted, argument.example);
}

// The arguments of a strategy are listed below it; their columns are aligned over the whole family.
std::string family_text(const Family& family, LineWidth width) {
  TextTable table({Column::left, Column::left, Column::wrapped}, kIndent);
  for (const Strategy& strategy : family.strategies) {
    for (const Argument& argument : strategy.arguments) {
      table.add({argument.name, shown_default(argument), shown_values(argument)});
    }
  }
  const std::vector<std::string> arguments = table.rows(width);
  const std::string title = fmt::format("{} ({}): {}", family.name, family.option, family.help);
  std::string text = wrapped(title, 0, width) + '\n';
  auto next = arguments.begin();
  for (const Strategy& strategy : family.strategies) {
    text += fmt::format("\n{}\n{:{}}{}\n", strategy.name, "", kIndent,
                        wrapped(strategy.help, kIndent, width));
    for (std::size_t i = 0; i < strategy.arguments.size(); ++i) text += *next++;
  }
  if (arguments.empty()) return text;
  // Names such as "csv:FILE" already contain a colon.
  const bool has_colon =
      std::any_of(family.strategies.begin(), family.strategies.end(), [](const Strategy& strategy) {
        return !strategy.arguments.empty() && strategy.name.find(':') != std::string::npos;
      });
  const std::string form = fmt::format(
      "Given as NAME{}ARGUMENT=VALUE,ARGUMENT=VALUE. The columns: argument, default, accepted "
      "values.",
      has_colon ? ',' : ':');
  return text + '\n' + wrapped(form, 0, width) + '\n';
}

std::string overview(std::span<const Family> all, LineWidth width) {
  TextTable table({Column::left, Column::left, Column::wrapped}, kIndent);
  for (const Family& family : all) {
    table.add({family.name, family.option,
               fmt::to_string(fmt::join(row_names(family.strategies), ", "))});
  }
  const std::string title = "The names that options take; `rubato list FAMILY` explains each.";
  return wrapped(title, 0, width) + "\n\n" + table.text(width);
}

// The columns of a record are listed below it.
std::string records_text(LineWidth width) {
  const std::string title =
      "What rubato writes for other programs: a line of metrics.jsonl for each step, minibatch, "
      "epoch, ..., whose \"kind\" says which; summary.json; the JSON of `rubato eval`.";
  std::string text = wrapped(title, 0, width) + '\n';
  for (const RecordInfo& record : record_infos()) {
    TextTable table({Column::left, Column::left, Column::wrapped}, kIndent);
    for (const ColumnInfo& column : record.columns) {
      table.add({json_path(column), value_name(column), column.help});
    }
    text += fmt::format("\n{}\n{:{}}{}\n{}", record.name, "", kIndent,
                        wrapped(record.help, kIndent, width), table.text(width));
  }
  return text;
}

JsonForm<std::vector<Family>> families_form() {
  const JsonForm<Argument> argument = form_of_object<Argument>(
      {{"name", "name of the argument", &Argument::name},
       {"kind", "kind of its value", &Argument::kind, form_of_choice(kArgumentKinds)},
       {"default", "what holds without it, as text that it takes",
        text_or_none(&Argument::fallback)},
       {"unset", "what holds without it, in words", text_or_none(&Argument::unset)},
       {"required", "whether it has to be given",
        [](const Argument& of) { return !of.example.empty(); }},
       {"example", "a value, where it has to be given", text_or_none(&Argument::example)},
       {"accepted", "what it takes, in words", &Argument::accepted},
       {"choices", "the names that it takes, where it is a choice", &Argument::choices}});
  const JsonForm<Strategy> strategy =
      form_of_object<Strategy>({{"name", "name of the strategy", &Strategy::name},
                                {"help", "what it does", &Strategy::help},
                                {"arguments", "that it takes", &Strategy::arguments, argument}});
  return form_of_object<std::vector<Family>>(
      {{"families", "those that were asked for, or all", std::identity(),
        form_of_object<Family>({{"name", "as rubato list has it", &Family::name},
                                {"option", "the option that takes its names", &Family::option},
                                {"help", "what it is", &Family::help},
                                {"strategies", "of the family", &Family::strategies, strategy}})}});
}

// The JSON Schemas of what commands print or write as JSON, by name.
Json output_schemas() {
  Json all;
  const auto add = [&all](const char* name, const char* title, const char* help, const Json& form) {
    Json& schema = all[name];
    schema = {{"$schema", kJsonSchemaDraft}, {"title", title}, {"description", help}};
    schema.update(form);
  };
  add("bench-reduce", "rubato bench reduce --json", "How fast reduction strategies are.",
      bench_schema());
  add("diff", "rubato diff --json", "Where two trainings part, and how their distance grows.",
      diff_schema());
  add("doctor", "rubato doctor --json", "What rubato found out about the machine.",
      doctor::report_schema());
  add("doom", "rubato doom --json", "From which step on a run was lost (docs/going-back.md).",
      doom_form().schema);
  add("hosts", "rubato hosts --json", "How a run of hosts that come and go stands (docs/hosts.md).",
      hosts_form().schema);
  add("list", "rubato list --json", "What options take by name.", families_form().schema);
  add("plan", "rubato plan --json",
      "The minibatches of every core in every step. Epochs, steps, cores and minibatches count "
      "from 0.",
      plan_schema());
  add("simulate", "rubato simulate --json",
      "A training for each combination of the options that were given.", simulation_form().schema);
  add("simulate-mtbf", "rubato simulate --mtbf --json",
      "Intervals between checkpoints for each combination of the options and each mean time "
      "between failures.",
      failure_form().schema);
  add("trace", "rubato trace show --json",
      "A summary of a trace, or of availability: the devices over time.", summary_schema());
  add("whatif", "rubato whatif --json",
      "What a run would have been without the events of its trace.", whatif_form().schema);
  return all;
}

std::vector<std::string> listed_names() {
  auto names = vector_of<std::string>(families(), &Family::name);
  names.insert(names.end(), {std::string(kRecords), std::string(kSchemas)});
  return names;
}

}  // namespace

int list_command(std::span<const std::string> arguments) {
  RunConfiguration named;
  std::vector<Family> wanted;
  bool records = false;
  bool schemas = false;
  bool json = false;
  CommandLine line("rubato list",
                   "Prints what options take by name (models, rules, optimizers, ...): all names, "
                   "or those of a family with their arguments. `rubato list records` prints what "
                   "rubato writes for other programs, `rubato list schemas` the "
                   "JSON Schemas of what its commands print with --json.");
  line.operands(
      OperandCount::any, "FAMILY", "what to explain, or records, or schemas [the names of all]",
      [&](const std::string& text) {
        records = records || text == kRecords;
        schemas = schemas || text == kSchemas;
        if (text != kRecords && text != kSchemas) {
          wanted.push_back(family(text, families(named.extensions)));
        }
      },
      listed_names());
  define_plugins(line, named);
  line.flag("json",
            "print JSON: everything about the given families, or about all; for records, their "
            "JSON Schema",
            json);
  line.footer(
      "Examples:\n"
      "  rubato list\n"
      "  rubato list rules schedules\n"
      "  rubato list --json\n"
      "  rubato list records --json");
  line.parse(arguments);
  if (records + schemas + (wanted.empty() ? 0 : 1) > 1) {
    throw_error("{} are listed by themselves; accepted: without the name of a family",
                records ? kRecords : kSchemas);
  }
  if (records) {
    json ? print_out(record_json_schema()) : print_text(records_text(output_width()));
    return 0;
  }
  if (schemas) {
    print_out(json_text(output_schemas(), 2) + '\n');
    return 0;
  }
  const std::vector<Family> all = families(named.extensions);
  if (json) {
    print_out(json_text(families_form().write(wanted.empty() ? all : wanted), 2) + '\n');
    return 0;
  }
  const LineWidth width = output_width();
  if (wanted.empty()) print_text(overview(all, width));
  for (const Family& one : wanted) {
    print_text((&one == wanted.data() ? "" : "\n") + family_text(one, width));
  }
  return 0;
}

}  // namespace rubato::app
