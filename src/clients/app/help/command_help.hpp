#pragma once

#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rubato::app {

/// How many arguments that are no options a command takes.
enum class OperandCount { optional, one, any, some };

/// What a command says of one of its options, or of its arguments that are no options.
struct OptionHelp {
  /// The heading that it stands under.
  std::string group{};
  /// Without dashes; empty for what is no option.
  std::string name{};
  /// "h" for -h; empty without one.
  std::string letter{};
  /// Stands for the value; empty for a flag.
  std::string value{};
  std::string help{};
  std::string shown_default{};
  /// Whether the value may be several, with commas between them.
  bool takes_several = false;
  /// How many there are of what is no option; of an option, that it may be given without its name.
  std::optional<OperandCount> operands{};
  /// Names that can be given in place of `value`, where it does not list them itself.
  std::vector<std::string> names{};
};

/// What a command says of itself: what --help prints, a manual page shows and a shell completes.
struct CommandHelp {
  struct Command {
    std::string name{};
    std::string summary{};
  };

  /// As it is typed: "rubato train".
  std::string name{};
  std::string description{};
  /// Where it has commands of its own.
  std::vector<Command> commands{};
  /// In the order in which they are shown, those of a group together.
  std::vector<OptionHelp> options{};
  /// This text describes the arguments of another command that follow "--", in brackets if they are
  /// optional. It is empty if there are none.
  std::string rest{};
  /// Running text, and examples, which are indented.
  std::string footer{};
};

/// Thrown by a command whose arguments ask for what it says of itself. run_reporting_errors()
/// prints it.
class HelpAsked : public std::exception {
 public:
  explicit HelpAsked(CommandHelp help) : help_(std::move(help)) {}

  [[nodiscard]] const CommandHelp& help() const { return help_; }
  [[nodiscard]] const char* what() const noexcept override { return "asked for the help"; }

 private:
  CommandHelp help_;
};

}  // namespace rubato::app
