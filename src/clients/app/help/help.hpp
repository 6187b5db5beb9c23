#pragma once

#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/text/text.hpp"

namespace rubato::app {

/// The number of operands that a command takes, which are arguments other than options: at most
/// one, one, any number, or at least one.
enum class OperandCount { optional, one, any, some };

/// The help for an option, or for the operands of a command.
struct OptionHelp {
  /// The heading above the option.
  std::string group{};
  /// The name without dashes; empty for operands.
  std::string name{};
  /// The short form, "h" for -h; empty if there is none.
  std::string letter{};
  /// The placeholder of the value; empty for a flag.
  std::string value{};
  std::string help{};
  std::string shown_default{};
  /// The number of operands; set for an option if it may also be given without its name.
  std::optional<OperandCount> operands{};
  /// The names that can be given as a value, if `value` does not list them.
  std::vector<std::string> names{};
};

/// The help of a command: --help prints it, from which help2man makes the manual page,
/// and shells complete from it.
struct CommandHelp {
  struct Command {
    std::string name{};
    std::string summary{};
  };

  /// The command as it is typed: "rubato train".
  std::string name{};
  std::string description{};
  /// The commands within this one, if it has any.
  std::vector<Command> commands{};
  /// The options in the order in which they are shown; those of a group follow each other.
  std::vector<OptionHelp> options{};
  /// The arguments of another command that follow "--", in brackets if they are optional; empty if
  /// the command takes none.
  std::string rest{};
  /// Prose and examples; the examples are indented.
  std::string footer{};
};

/// Thrown by a command whose arguments ask for its help; run_reporting_errors() prints it.
class HelpAsked : public std::exception {
 public:
  explicit HelpAsked(CommandHelp help) : help_(std::move(help)) {}

  [[nodiscard]] const CommandHelp& help() const { return help_; }
  [[nodiscard]] const char* what() const noexcept override { return "asked for the help"; }

 private:
  CommandHelp help_;
};

struct CommandGroup;

/// A command, as a row of a table.
struct Command {
  std::string_view name{};
  /// One line about what the command does.
  std::string_view summary{};
  /// Runs the command and returns its exit code. Throws HelpAsked if the arguments ask for help.
  /// Null for a command that does nothing but run one of `group`.
  int (*run)(std::span<const std::string> arguments) = nullptr;
  /// The commands within this one; null if it has none.
  const CommandGroup* group = nullptr;

  [[nodiscard]] std::span<const Command> commands() const;
  /// Runs this command, or the one within it that the first argument names. Throws HelpAsked, and
  /// Error if that is missing or unknown.
  [[nodiscard]] int execute(std::span<const std::string> arguments) const;
};

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

/// The text that --help prints, in lines of at most 80 columns, or fewer on a narrow terminal: the
/// options by group, each with its value, meaning and default.
[[nodiscard]] std::string help_text(const CommandHelp& help, LineWidth width);

/// The arguments in the usage line: "[RUN] [OPTIONS]".
[[nodiscard]] std::string usage_of(const CommandHelp& help);

}  // namespace rubato::app
