#include "commands.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "base/core/check.hpp"
#include "clients/app/line/output.hpp"
#include "help_text.hpp"

namespace rubato::app {

std::vector<std::string_view> names_of(std::span<const Command> commands) {
  std::vector<std::string_view> names;
  for (const Command& command : commands) names.push_back(command.name);
  return names;
}

const Command& find_command(std::string_view kind, std::string_view name,
                            std::span<const Command> commands) {
  const auto found = std::ranges::find(commands, name, &Command::name);
  if (found != commands.end()) return *found;
  throw Error(unknown_name_message(kind, name, names_of(commands)));
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
    throw Error(fmt::format("{} what? accepted: {}",
                            group.name.substr(group.name.find_last_of(' ') + 1),
                            fmt::join(names_of(group.commands), ", ")));
  }
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h") throw HelpAsked(help_of_group(group));
  return find_command(group.kind, name, group.commands).run(arguments.subspan(1));
}

CommandHelp help_of(const Command& command) {
  CommandHelp help;
  try {
    static_cast<void>(command.run(std::array{std::string("--help")}));
    RUBATO_CHECK(false, "every command answers --help with what it says of itself");
  } catch (const HelpAsked& asked) {
    help = asked.help();
  }
  return help;
}

}  // namespace rubato::app
