#pragma once

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace rubato::app {

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
  /// The option whose value may be the first argument, without its name; empty where there is none.
  std::string leading{};
  /// What stands behind "--": the arguments of another command. Empty where there is none.
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
