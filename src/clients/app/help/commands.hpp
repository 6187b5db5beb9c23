#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "command_help.hpp"

namespace rubato::app {

/// A command, as a row of a table of them.
struct Command {
  std::string_view name{};
  /// What it does, in a line.
  std::string_view summary{};
  /// Returns the exit code. Throws HelpAsked where the arguments ask for the help.
  int (*run)(std::span<const std::string> arguments) = nullptr;
  /// Those that it has; null for a command without.
  std::span<const Command> (*commands)() = nullptr;
};

/// The one of that name. Throws Error where there is none, naming the nearest; `kind` says what it
/// was to be ("command").
[[nodiscard]] const Command& find_command(std::string_view kind, std::string_view name,
                                          std::span<const Command> commands);

/// What a command with commands says of itself.
struct CommandGroup {
  /// As it is typed: "rubato trace".
  std::string_view name{};
  std::string_view description{};
  /// What one of them is called in messages: "command".
  std::string_view kind{};
  std::span<const Command> commands{};
  std::string_view footer{};
};

[[nodiscard]] std::vector<std::string_view> names_of(std::span<const Command> commands);

/// Its help.
[[nodiscard]] CommandHelp help_of_group(const CommandGroup& group);

/// Runs the one that the first argument names. Throws Error for an unknown one, and without one,
/// and HelpAsked.
[[nodiscard]] int run_group(const CommandGroup& group, std::span<const std::string> arguments);

/// What the command says of itself.
[[nodiscard]] CommandHelp help_of(const Command& command);

}  // namespace rubato::app
