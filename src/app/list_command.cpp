#include "app/list_command.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <rubato/config/families.hpp>

#include "app/command_line.hpp"
#include "app/output.hpp"
#include "app/wrapped.hpp"

namespace rubato::app {

namespace {

using Json = nlohmann::ordered_json;

// Between two columns, and before the first.
constexpr std::size_t kGap = 2;
constexpr std::size_t kIndent = 4;

// What stands in the column of the defaults.
std::string shown_default(const Argument& argument) {
  if (!argument.example.empty()) return "required";
  return argument.fallback.empty() ? argument.unset : argument.fallback;
}

std::string shown_values(const Argument& argument) {
  if (argument.example.empty()) return argument.accepted;
  return fmt::format("{}, such as {}", argument.accepted, argument.example);
}

// Widths that all arguments of a family have room in.
struct Columns {
  std::size_t name = 0;
  std::size_t fallback = 0;
};

Columns columns_of(const Family& family) {
  Columns columns;
  for (const Strategy& strategy : family.strategies) {
    for (const Argument& argument : strategy.arguments) {
      columns.name = std::max(columns.name, argument.name.size());
      columns.fallback = std::max(columns.fallback, shown_default(argument).size());
    }
  }
  return columns;
}

std::string row_text(const Columns& columns, std::string_view name, std::string_view fallback,
                     std::string_view values) {
  const std::size_t last = kIndent + columns.name + kGap + columns.fallback + kGap;
  return fmt::format("{:{}}{:<{}}{:<{}}{}\n", "", kIndent, name, columns.name + kGap, fallback,
                     columns.fallback + kGap, wrapped(values, last));
}

std::string family_text(const Family& family) {
  const Columns columns = columns_of(family);
  const std::string title = fmt::format("{} ({}): {}", family.name, family.option, family.help);
  std::string text = wrapped(title, 0) + '\n';
  for (const Strategy& strategy : family.strategies) {
    text +=
        fmt::format("\n{}\n{:{}}{}\n", strategy.name, "", kIndent, wrapped(strategy.help, kIndent));
    for (const Argument& argument : strategy.arguments) {
      text += row_text(columns, argument.name, shown_default(argument), shown_values(argument));
    }
  }
  if (columns.name == 0) return text;
  return text +
         "\nGiven as NAME:ARGUMENT=VALUE,ARGUMENT=VALUE. The columns: argument, default,\n"
         "what is accepted.\n";
}

std::string overview() {
  Columns columns;
  for (const Family& family : families()) {
    columns.name = std::max(columns.name, family.name.size());
    columns.fallback = std::max(columns.fallback, family.option.size());
  }
  std::string text = "What options take by name; `rubato list FAMILY` explains each.\n\n";
  for (const Family& family : families()) {
    text += row_text(columns, family.name, family.option,
                     fmt::to_string(fmt::join(row_names(family.strategies), ", ")));
  }
  return text;
}

// Null where there is none.
Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json argument_json(const Argument& argument) {
  return {{"name", argument.name},
          {"kind", choice_name(kArgumentKinds, argument.kind)},
          {"default", text_or_null(argument.fallback)},
          {"unset", text_or_null(argument.unset)},
          {"required", !argument.example.empty()},
          {"example", text_or_null(argument.example)},
          {"accepted", argument.accepted},
          {"choices", argument.choices}};
}

Json family_json(const Family& family) {
  Json strategies = Json::array();
  for (const Strategy& strategy : family.strategies) {
    Json arguments = Json::array();
    for (const Argument& argument : strategy.arguments) {
      arguments.push_back(argument_json(argument));
    }
    strategies.push_back(
        {{"name", strategy.name}, {"help", strategy.help}, {"arguments", std::move(arguments)}});
  }
  return {{"name", family.name},
          {"option", family.option},
          {"help", family.help},
          {"strategies", std::move(strategies)}};
}

std::string json_of(std::span<const Family> all) {
  Json json{{"families", Json::array()}};
  for (const Family& family : all) json["families"].push_back(family_json(family));
  return json.dump(2) + '\n';
}

}  // namespace

int list_command(std::span<const std::string> arguments) {
  std::vector<Family> wanted;
  bool json = false;
  CommandLine line("rubato list",
                   "Prints what options take by name (models, rules, optimizers, ...): all names, "
                   "or those of a family with their arguments.");
  line.operands("FAMILY", "what to explain [the names of all]",
                [&](const std::string& text) { wanted.push_back(family(text)); });
  line.flag("json", "print JSON: all there is to know of the families asked for, or of all", json);
  line.footer(
      "Examples:\n"
      "  rubato list\n"
      "  rubato list rules schedules\n"
      "  rubato list --json");
  if (!line.parse(arguments)) return 0;
  if (json) {
    print_out(json_of(wanted.empty() ? families() : wanted));
    return 0;
  }
  if (wanted.empty()) print_out(overview());
  for (const Family& one : wanted) {
    print_out((&one == wanted.data() ? "" : "\n") + family_text(one));
  }
  return 0;
}

}  // namespace rubato::app
