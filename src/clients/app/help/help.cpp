// A command is a function, a group of commands, or both, and answers --help by throwing HelpAsked.
// help_of() makes use of that: it executes the command with --help and catches the exception, so
// the options are described only where they are defined. The rest of the file lays a CommandHelp
// out as text; on narrow terminals the texts of options begin further left, and the prose of the
// footer is wrapped again while its examples keep their lines.

#include "help.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "base/core/check.hpp"
#include "base/core/text/text_table.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "clients/app/line/output.hpp"

namespace rubato::app {

std::vector<std::string_view> names_of(std::span<const Command> commands) {
  return vector_of(commands, &Command::name);
}

std::span<const Command> Command::commands() const {
  return group == nullptr ? std::span<const Command>() : group->commands;
}

int Command::execute(std::span<const std::string> arguments) const {
  return run == nullptr ? run_group(*group, arguments) : run(arguments);
}

CommandHelp help_of_group(const CommandGroup& group) {
  CommandHelp help{.name = std::string(group.name),
                   .description = std::string(group.description),
                   .footer = std::string(group.footer)};
  for (const Command& command : group.commands) {
    help.commands.push_back({std::string(command.name), std::string(command.summary)});
  }
  return help;
}

int run_group(const CommandGroup& group, std::span<const std::string> arguments) {
  if (arguments.empty()) {
    print_error(help_text(help_of_group(group), output_width()));
    throw_error("{} what? accepted: {}", group.name.substr(group.name.find_last_of(' ') + 1),
                fmt::join(names_of(group.commands), ", "));
  }
  const std::string& name = arguments.front();
  if (name == "help" && arguments.size() > 1) {
    return run_group(group, std::array{arguments[1], std::string("--help")});
  }
  if (name == "--help" || name == "-h" || name == "help") throw HelpAsked(help_of_group(group));
  const auto found = std::ranges::find(group.commands, name, &Command::name);
  if (found != group.commands.end()) return found->execute(arguments.subspan(1));
  throw Error(unknown_name_message(group.kind, name, names_of(group.commands)));
}

CommandHelp help_of(const Command& command) {
  try {
    static_cast<void>(command.execute(std::array{std::string("--help")}));
    RUBATO_CHECK(false, "every command answers --help with what it says of itself");
  } catch (const HelpAsked& asked) {
    return asked.help();
  }
}

namespace {

// The column in which the text of an option begins; narrower terminals than kWide have it further
// left.
constexpr std::size_t kTextColumn = 26;
constexpr std::size_t kNarrowTextColumn = 6;
constexpr std::size_t kWide = 66;

// On a narrow terminal, consecutive lines of prose are joined and wrapped; an example stays a line.
std::string footer_text(const std::string& footer, LineWidth width) {
  if (width.columns >= LineWidth::kProse) return footer;
  std::vector<std::string> lines;
  const auto is_example = [](std::string_view line) { return line.starts_with(' '); };
  for (const std::string_view line : split_at(footer, '\n')) {
    if (is_example(line) || lines.empty() || is_example(lines.back())) {
      lines.emplace_back(line);
    } else {
      lines.back().append(" ").append(line);
    }
  }
  for (std::string& line : lines) {
    line = is_example(line) ? fitted(line, width) : wrapped(line, 0, width);
  }
  return fmt::to_string(fmt::join(lines, "\n"));
}

std::string option_text(const OptionHelp& option, LineWidth width) {
  const std::size_t column = width.prose() < kWide ? kNarrowTextColumn : kTextColumn;
  std::string name = "  ";
  if (!option.letter.empty()) name += fmt::format("-{}, ", option.letter);
  if (!option.name.empty()) name += "--" + option.name + (option.value.empty() ? "" : " ");
  name += option.value;
  std::string text = option.help;
  if (!option.shown_default.empty()) text += fmt::format(" [{}]", option.shown_default);
  // The text of a long name begins on the next line.
  const std::string gap = name.size() + 2 <= column ? std::string(column - name.size(), ' ')
                                                    : '\n' + std::string(column, ' ');
  return fitted(name, width) + gap + wrapped(text, column, width) + '\n';
}

std::string operand_usage(OperandCount count, const std::string& value) {
  const bool several = count == OperandCount::any || count == OperandCount::some;
  const std::string text = several ? value + "..." : value;
  const bool is_needed = count == OperandCount::one || count == OperandCount::some;
  return is_needed ? text : '[' + text + ']';
}

std::string commands_text(const CommandHelp& help, LineWidth width) {
  if (help.commands.empty()) return {};
  TextTable table({Column::left, Column::left}, 2);
  for (const auto& [name, summary] : help.commands) table.add({name, summary});
  return fmt::format("\nCommands:\n{}", table.text(width));
}

}  // namespace

std::string usage_of(const CommandHelp& help) {
  std::string usage;
  if (!help.commands.empty()) usage += "COMMAND ";
  for (const OptionHelp& option : help.options) {
    if (option.operands) usage += operand_usage(*option.operands, option.value) + ' ';
  }
  usage += "[OPTIONS]";
  if (help.rest.empty()) return usage;
  return usage + (help.rest.starts_with('[') ? " [-- " + help.rest.substr(1) : " -- " + help.rest);
}

std::string help_text(const CommandHelp& help, LineWidth width) {
  std::string text = fmt::format("{}\n\nUsage: {} {}\n", wrapped(help.description, 0, width),
                                 help.name, usage_of(help));
  text += commands_text(help, width);
  // The options of a group follow each other, so a new name is a new heading.
  const std::string* group = nullptr;
  for (const OptionHelp& option : help.options) {
    if (group == nullptr || *group != option.group) text += fmt::format("\n{}:\n", option.group);
    group = &option.group;
    text += option_text(option, width);
  }
  if (!help.footer.empty()) text += fmt::format("\n{}\n", footer_text(help.footer, width));
  return text;
}

}  // namespace rubato::app
