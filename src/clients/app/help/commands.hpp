#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "command_help.hpp"

namespace rubato::app {

/// A command, as a row of a table.
struct Command {
  std::string_view name{};
  /// One line about what the command does.
  std::string_view summary{};
  /// Runs the command and returns its exit code. Throws HelpAsked if the arguments ask for help.
  int (*run)(std::span<const std::string> arguments) = nullptr;
  /// The commands within this one; null if it has none.
  std::span<const Command> (*commands)() = nullptr;
};

/// Returns the command of that name. Throws Error if there is none, naming the nearest; `kind` is
/// what to call a command in that message ("command").
[[nodiscard]] const Command& find_command(std::string_view kind, std::string_view name,
                                          std::span<const Command> commands);

/// A command that consists of commands.
struct CommandGroup {
  /// The group as it is typed: "rubato trace".
  std::string_view name{};
  std::string_view description{};
  /// The word for one of them in messages: "command".
  std::string_view kind{};
  std::span<const Command> commands{};
  std::string_view footer{};
};

[[nodiscard]] std::vector<std::string_view> names_of(std::span<const Command> commands);

/// The help of a group.
[[nodiscard]] CommandHelp help_of_group(const CommandGroup& group);

/// Runs the command that the first argument names. Throws Error if that is missing or unknown, and
/// HelpAsked.
[[nodiscard]] int run_group(const CommandGroup& group, std::span<const std::string> arguments);

/// The help of a command.
[[nodiscard]] CommandHelp help_of(const Command& command);

}  // namespace rubato::app
