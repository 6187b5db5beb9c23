#pragma once

#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
  /// True if the option takes several values, separated by commas.
  bool takes_several = false;
  /// The number of operands; set for an option if it may also be given without its name.
  std::optional<OperandCount> operands{};
  /// The names that can be given as a value, if `value` does not list them.
  std::vector<std::string> names{};
};

/// The help of a command: --help prints it, the manual page shows it, and shells complete from it.
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

}  // namespace rubato::app
