#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <rubato/base/parse.hpp>

#include "clients/app/help/help.hpp"
#include "runs/config/run_option.hpp"

// CLI11 is declared here only, as its headers are large.
namespace CLI {  // NOLINT(readability-identifier-naming): its name
class App;
class Option;
}  // namespace CLI

namespace rubato::app {

/// The texts of --help around the options of a command.
struct CommandTexts {
  /// The whole command as it is typed ("rubato train").
  const char* name;
  const char* description;
  const char* footer;
};

/// The options of one command: their names, their help and the checks of their values.
///
/// CLI11 only splits the arguments. The values are read here, so that the message about a wrong one
/// is the same for the arguments and for a configuration file.
class CommandLine {
 public:
  /// Takes the text of a value. Throws Error, without the name of the option, if it is wrong.
  using Setter = std::function<void(const std::string& text)>;
  /// Reads a configuration file; throws Error with file and line.
  using FileReader = std::function<void(const std::filesystem::path& file)>;

  /// `name` is the whole command as it is typed ("rubato train").
  CommandLine(std::string name, std::string description);
  explicit CommandLine(const CommandTexts& texts);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Puts the options added from here on under this heading in --help.
  void group(std::string heading) { group_ = std::move(heading); }
  /// Adds the option --`name`, whose value --help calls `value`. The default is shown as a user
  /// would type it, and omitted if empty. The last of several values counts.
  void option(const std::string& name, const std::string& value, const std::string& help,
              const std::string& shown_default, Setter set);
  /// The same for a value that is kept in `target` as it is typed, such as a path.
  template <class Target>
  void text(const std::string& name, const std::string& value, const std::string& help,
            const std::string& shown_default, Target& target) {
    option(name, value, help, shown_default, [&target](const std::string& text) { target = text; });
  }
  /// The same for a whole number from `min` to `max`.
  template <class Target>
  void whole(const std::string& name, const std::string& value, const std::string& help,
             const std::string& shown_default, Target& target, std::int64_t min, std::int64_t max) {
    option(name, value, help, shown_default, [&target, min, max](const std::string& text) {
      const std::int64_t number = parse_whole(text, min, max);
      if constexpr (std::is_integral_v<Target>) {
        target = static_cast<Target>(number);
      } else {
        target = number;
      }
    });
  }
  /// The same for a number in `range`, which must outlive parse().
  void real(const std::string& name, const std::string& value, const std::string& help,
            const std::string& shown_default, double& target, const RealRange& range) {
    option(name, value, help, shown_default,
           [&](const std::string& text) { target = parse_real(text, range); });
  }
  /// The same for a name of `choices`, which must outlive parse(); messages about a wrong one call
  /// it `kind`.
  template <class Target, class Enum, std::size_t N>
  void choice(const std::string& name, const std::string& help, const std::string& shown_default,
              const char* kind, const std::array<Choice<Enum>, N>& choices, Target& target) {
    option(name, choice_names(choices), help, shown_default,
           [&, kind](const std::string& text) { target = parse_choice(kind, text, choices); });
  }
  /// Adds the flag --`name`, with an optional value, true or false.
  void flag(const std::string& name, const std::string& help, Setter set);
  void flag(const std::string& name, const std::string& help, bool& target);
  /// Adds the option --`name`, which may be given several times. `set` is called for each value, in
  /// their order.
  void list(const std::string& name, const std::string& value, const std::string& help,
            const std::string& shown_default, Setter set);
  /// Makes parse() read the option `name`, which has been added, before all others, including those
  /// in a file.
  void first(const std::string& name) { entries_.at(name).first = true; }
  /// The same for a flag, whose values are texts such as "true,false"; a flag without a value
  /// passes "true".
  void flag_list(const std::string& name, const std::string& help, Setter set);
  /// Takes operands, which are arguments other than options; --help calls one of them `value`, and
  /// `names` are the values it may have. They may stand among the options, or after "--" if they
  /// begin with '-'.
  void operands(OperandCount count, const std::string& value, const std::string& help, Setter take,
                std::vector<std::string> names = {});
  /// Describes the arguments after "--", which are not read here, such as "train OPTIONS". Text in
  /// brackets is optional.
  void rest(std::string value) { rest_ = std::move(value); }
  /// Adds --config FILE; `read` takes options from the file before the arguments override them.
  void config(FileReader read);
  /// Adds --`name` `value`, which names something with a configuration of its own. `file` returns
  /// its file, which is read as that of --config is. Not to be given together with --config or
  /// another of its kind.
  ///
  /// With `is_operand`, the value may also be given without --`name`, as an operand.
  void config_of(const std::string& name, const std::string& value, const std::string& help,
                 std::function<std::filesystem::path(const std::string& text)> file,
                 bool is_operand = false);
  /// Makes an option that is there already one of these.
  void config_of(const std::string& name,
                 std::function<std::filesystem::path(const std::string& text)> file);
  /// The text at the end of --help.
  void footer(std::string text);

  /// Reads `arguments`, which begin after the name of the command. Throws HelpAsked if they ask for
  /// help, and Error for an unknown option (naming the nearest) and for every value that its setter
  /// rejects (with the option, or the file and line).
  void parse(std::span<const std::string> arguments);

  /// Throws Error if `option` was given in the arguments although it is idle: it has no effect, for
  /// the reason `why`; `accepted` says what would give it one.
  ///
  /// The rule for all commands is: would the user want this run? If an argument has no effect
  /// because of the other options (--min-delta where nothing stops early), the user meant another
  /// run, and it is an Error before anything is trained. If the run is what the user meant and the
  /// argument is a precaution that turns out to be unnecessary (--cores for a trace that always has
  /// them, a fault in a step that is never reached, --log-steps on a terminal), a line on stderr
  /// says so.
  ///
  /// Only arguments are judged. A configuration lists all options, as to_toml() writes it, and some
  /// of them may have no effect because an argument has switched off what they are for.
  void refuse_idle(std::string_view option, bool is_idle, std::string_view why,
                   std::string_view accepted) const;

  /// The options given in the arguments of parse(), as opposed to a configuration file.
  [[nodiscard]] const GivenOptions& given() const { return given_; }

  /// The help of the command.
  [[nodiscard]] CommandHelp help() const;
  /// The help of all options that were added, in the order of their names.
  [[nodiscard]] std::vector<OptionHelp> descriptions() const;
  /// The names of all options that were added.
  [[nodiscard]] std::vector<std::string_view> option_names() const;

 private:
  struct Entry {
    CLI::Option* option = nullptr;
    Setter set;
    /// True if every value counts, not only the last.
    bool each = false;
    /// True if it is read before files.
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
  // The operands; the option is null if the command takes none.
  Entry operands_;
  OperandCount operand_count_ = OperandCount::any;
  std::vector<std::string> operand_names_;
  // Set by rest().
  std::string rest_;
  // Set by config_of(), by the name of the option.
  std::map<std::string, std::function<std::filesystem::path(const std::string&)>> files_of_;
  FileReader read_file_;
};

/// Runs the `body` of a program and returns its exit code. If it throws HelpAsked, the help is
/// printed. Otherwise the message of an exception is printed to stderr after `program`, and the
/// exit code depends on its type: an Error is ExitCode::usage, unless it is about output that
/// cannot be written, memory that is missing or a lost host; an unknown exception is
/// ExitCode::internal.
[[nodiscard]] int run_reporting_errors(std::string_view program, const std::function<int()>& body);

}  // namespace rubato::app
