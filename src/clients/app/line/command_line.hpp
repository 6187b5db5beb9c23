#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clients/app/help/command_help.hpp"
#include "runs/config/run_option.hpp"

// Of CLI11, whose headers are large.
namespace CLI {  // NOLINT(readability-identifier-naming): its name
class App;
class Option;
}  // namespace CLI

namespace rubato::app {

/// The options of one command: their names, what --help says of them, how their values are checked.
///
/// CLI11 splits the arguments; the values themselves are read here, so that a wrong one is answered
/// in the same words whether it stands in the arguments or in a configuration file.
class CommandLine {
 public:
  /// Takes the text of a value; throws Error, without the name of the option, when it is wrong.
  using Setter = std::function<void(const std::string& text)>;
  /// Reads a configuration file; throws Error with file and line.
  using FileReader = std::function<void(const std::filesystem::path& file)>;

  /// `name` is the whole command as it is typed ("rubato train").
  CommandLine(std::string name, std::string description);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// The options added from here on stand under this heading in --help.
  void group(std::string heading) { group_ = std::move(heading); }
  /// Adds the option --`name`, which takes a value; `value` names it in --help. The default, as a
  /// user would type it, is left out of --help where it is empty. Given twice, the last one counts.
  void option(const std::string& name, const std::string& value, const std::string& help,
              const std::string& shown_default, Setter set);
  /// Adds the flag --`name`, which may be given a value all the same: true or false.
  void flag(const std::string& name, const std::string& help, Setter set);
  void flag(const std::string& name, const std::string& help, bool& target);
  /// Adds the option --`name`, which may be given several times: `set` is called for each value, in
  /// their order.
  void list(const std::string& name, const std::string& value, const std::string& help,
            const std::string& shown_default, Setter set);
  /// The option `name`, which was added, is read before all others, those of a file included.
  void first(const std::string& name) { entries_.at(name).first = true; }
  /// The same for a flag, whose values are texts such as "true,false"; without one it is "true".
  void flag_list(const std::string& name, const std::string& help, Setter set);
  /// Takes as many arguments that are no options; `value` stands for one in --help, and `names` are
  /// those that it may be. They stand among the options, or behind "--" where they begin with '-'.
  void operands(OperandCount count, const std::string& value, const std::string& help, Setter take,
                std::vector<std::string> names = {});
  /// Describes what follows the argument "--", which is not read here: "train OPTIONS". A value in
  /// brackets may be left out.
  void rest(std::string value) { rest_ = std::move(value); }
  /// Adds --config FILE, from which `read` takes options before the arguments override them.
  void config(FileReader read);
  /// Adds --`name` `value`, which names something with a configuration of its own: `file` says
  /// which, and it is read in the same way. Not to be given together with --config.
  ///
  /// With `is_operand`, it may stand without --`name`, as operands() do.
  void config_of(const std::string& name, const std::string& value, const std::string& help,
                 std::function<std::filesystem::path(const std::string& text)> file,
                 bool is_operand = false);
  /// The end of --help.
  void footer(std::string text);

  /// Reads `arguments`, which begin after the name of the command. Throws HelpAsked when they ask
  /// for the help, and Error for an unknown option (naming the nearest) and for whatever the
  /// setters reject, with the option or the file and line.
  void parse(std::span<const std::string> arguments);

  /// The options that the arguments of parse() give; a configuration may give others.
  [[nodiscard]] const GivenOptions& given() const { return given_; }

  /// What --help says.
  [[nodiscard]] CommandHelp help() const;
  /// What it says of all options that were added, by name.
  [[nodiscard]] std::vector<OptionHelp> descriptions() const;
  /// The names of all that was added.
  [[nodiscard]] std::vector<std::string_view> option_names() const;

 private:
  struct Entry {
    CLI::Option* option = nullptr;
    Setter set;
    /// Whether each value counts, and not the last alone.
    bool each = false;
    /// Whether it is read before files.
    bool first = false;
  };

  void add(const std::string& name, Entry entry);
  void split(std::span<const std::string> arguments);
  [[nodiscard]] OptionHelp help_of(const CLI::Option& option) const;
  void take_arguments(bool first);
  void take_operands() const;
  void reject_missing_values() const;
  [[noreturn]] void reject_missing_value(const std::string& name) const;
  [[noreturn]] void reject_extra(const std::string& argument, bool is_behind_border) const;
  [[nodiscard]] std::string unknown_option(std::string_view typed, std::string_view dashes) const;

  std::unique_ptr<CLI::App> app_;
  std::string group_ = "Options";
  std::map<std::string, Entry, std::less<>> entries_;
  GivenOptions given_;
  // Of operands(); its option is null where there are none.
  Entry operands_;
  OperandCount operand_count_ = OperandCount::any;
  std::vector<std::string> operand_names_;
  // Set by rest(); empty without.
  std::string rest_;
  // Of config_of(); empty where there is none.
  std::string config_of_;
  std::function<std::filesystem::path(const std::string&)> file_of_;
  FileReader read_file_;
};

/// Runs a program's `body` and returns its exit code. Help that was asked for is printed. An Error
/// is printed to stderr behind `program` and is ExitCode::usage, but output that could not be
/// written and memory that could not be had have codes of their own; any other exception is
/// ExitCode::internal.
[[nodiscard]] int run_reporting_errors(std::string_view program, const std::function<int()>& body);

}  // namespace rubato::app
