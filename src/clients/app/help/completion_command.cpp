// The scripts are generated from the help of every command, which help_of() gets by executing the
// command with --help, so no list of options is kept by hand. Bash gets an associative array of
// words and one function that finds the key for the word under the cursor; zsh runs the same
// function through bashcompinit, and fish gets one `complete` command for each option and command.
// The scripts are static: completing a word never starts rubato, and strategies of plug-ins are not
// offered.

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "clients/app/commands.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/output.hpp"

namespace rubato::app {

namespace {

using Words = std::vector<std::string>;

// Returns the beginning of a value that is typed as it stands: "digits", or "csv:" of "csv:FILE".
// Empty if the value begins with a placeholder.
std::string_view typed_part(std::string_view text) {
  const auto is_typed = [](char c) {
    return std::islower(static_cast<unsigned char>(c)) != 0 ||
           std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-' || c == ':';
  };
  const auto end = std::ranges::find_if_not(text, is_typed) - text.begin();
  const std::string_view part = text.substr(0, static_cast<std::size_t>(end));
  return part.size() == text.size() || part.ends_with(':') ? part : std::string_view();
}

// Returns whether an option, or operand, takes the names of a family: it is the family's, or a
// placeholder of its value is called like the family, as GENERATOR is like generators.
bool takes(const OptionHelp& option, const std::vector<std::string_view>& parts,
           const Family& family) {
  if (!option.name.empty() && family.option == "--" + option.name) return true;
  return std::ranges::any_of(parts, [&](std::string_view part) {
    std::string name(part);
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return family.name == name + 's' && name != part;
  });
}

// The names that an option takes (`rubato list`), and those that its help lists. A name that needs
// arguments ends with a colon.
Words values_of(const OptionHelp& option) {
  Words values;
  const auto add = [&](std::string value) {
    if (!value.empty() && std::ranges::find(values, value) == values.end()) {
      values.push_back(std::move(value));
    }
  };
  // A value with blanks is a phrase: "N steps|epochs".
  std::vector<std::string_view> parts;
  if (option.value.find(' ') == std::string::npos) parts = split_at(option.value, '|');
  for (const Family& family : families()) {
    if (!takes(option, parts, family)) continue;
    for (const Strategy& strategy : family.strategies) {
      std::string value(typed_part(strategy.name));
      const bool needs_more = std::ranges::any_of(
          strategy.arguments, [](const Argument& argument) { return !argument.example.empty(); });
      if (needs_more && !value.empty() && !value.ends_with(':')) value += ':';
      add(std::move(value));
    }
  }
  for (const std::string& name : option.names) add(std::string(typed_part(name)));
  for (const std::string_view part : parts) add(std::string(typed_part(part)));
  return values;
}

// Calls `take` with each command, and its words behind "rubato".
void for_each_command(
    const Command& command, const Words& words,
    const std::function<void(const Words& words, const CommandHelp& help)>& take) {
  take(words, help_of(command));
  for (const Command& one : command.commands()) {
    Words longer = words;
    longer.emplace_back(one.name);
    for_each_command(one, longer, take);
  }
}

// The words of each command: below "rubato/trace" its options, below "rubato/trace/" its commands
// or the names that it takes, below "rubato/train/--rule" those that the option takes. The last of
// the words on the line decides which of them are meant; everything else is files.
constexpr std::string_view kBash = R"(_rubato_complete() {
  local last=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=rubato prefix= key word
  for word in "${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do
    if [[ $word == -- ]]; then command=rubato; fi
    if [[ $word != -* && -n ${_rubato_words[$command/$word]} ]]; then command+=/$word; fi
  done
  # Bash divides words at '=', zsh does not.
  if [[ $last == --*=* ]]; then
    before=${last%%=*} prefix=${last%%=*}= last=${last#*=}
  elif [[ $last == = ]]; then
    last=
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  key=$command/
  if [[ -n ${_rubato_words[$command/$before]} && $before == -* ]]; then
    key=$command/$before
    prefix+=${last%"${last##*[,+]}"} last=${last##*[,+]}
  elif [[ $last == -* ]]; then
    key=$command
  fi
  COMPREPLY=($(compgen -P "$prefix" -W "${_rubato_words[$key]}" -- "$last"))
  if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *: ]]; then compopt -o nospace 2>/dev/null; fi
  return 0
}
)";

std::string table_of_words() {
  std::string table = "declare -gA _rubato_words=(\n";
  const auto add = [&](const std::string& key, const Words& words) {
    if (!words.empty()) table += fmt::format("[{}]='{}'\n", key, fmt::join(words, " "));
  };
  for_each_command(kProgram, {}, [&](const Words& words, const CommandHelp& help) {
    std::string key = "rubato";
    for (const std::string& word : words) key += '/' + word;
    Words options;
    Words names;
    for (const auto& [name, summary] : help.commands) names.push_back(name);
    for (const OptionHelp& option : help.options) {
      const Words values = values_of(option);
      if (!option.name.empty()) options.push_back("--" + option.name);
      if (!option.name.empty()) add(fmt::format("{}/--{}", key, option.name), values);
      if (option.operands) names = values;
    }
    if (!help.rest.empty()) options.emplace_back("--");
    if (options.empty()) options.emplace_back("--help");
    add(key, options);
    add(key + '/', names);
  });
  return table + ")\n";
}

std::string bash_functions() {
  return fmt::format("{}{}complete -o default -F _rubato_complete rubato\n", kBash,
                     table_of_words());
}

std::string bash_script() {
  return "# Completes the commands, options and names of rubato in bash.\n" + bash_functions();
}

std::string zsh_script() {
  return fmt::format(
      "#compdef rubato\n# Completes the commands, options and names of rubato in zsh.\n"
      "autoload -Uz +X bashcompinit && bashcompinit\n{}"
      "if [[ $funcstack[1] == _rubato ]]; then _bash_complete -o default -F _rubato_complete; fi\n",
      bash_functions());
}

std::string fish_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '\'';
}

std::string fish_script() {
  std::string script = "# Completes the commands, options and names of rubato in fish.\n";
  for_each_command(kProgram, {}, [&](const Words& words, const CommandHelp& help) {
    std::string where = words.empty() ? "__fish_use_subcommand" : "";
    for (const std::string& word : words) {
      where += fmt::format("{}__fish_seen_subcommand_from {}", where.empty() ? "" : "; and ", word);
    }
    const std::string begin = "complete --command rubato --condition " + fish_quoted(where);
    for (const auto& [name, summary] : help.commands) {
      script += fmt::format("{} --no-files --arguments {} --description {}\n", begin, name,
                            fish_quoted(summary));
    }
    for (const OptionHelp& option : help.options) {
      const std::string values = fmt::to_string(fmt::join(values_of(option), " "));
      if (!values.empty() && option.operands) {
        script += fmt::format("{} --arguments {}\n", begin, fish_quoted(values));
      }
      if (option.name.empty()) continue;
      script += fmt::format("{} --long-option {} --description {}", begin, option.name,
                            fish_quoted(option.help));
      if (!option.value.empty()) script += " --require-parameter";
      if (!values.empty()) script += " --arguments " + fish_quoted(values);
      script += '\n';
    }
  });
  return script;
}

struct Shell {
  std::string_view name;
  std::string (*script)();
  // The file in which the script is installed, below the folder `share`.
  std::string_view installed;
};
constexpr std::array<Shell, 3> kShells{
    {{"bash", bash_script, "bash-completion/completions/rubato"},
     {"zsh", zsh_script, "zsh/site-functions/_rubato"},
     {"fish", fish_script, "fish/vendor_completions.d/rubato.fish"}}};

}  // namespace

int completion_command(std::span<const std::string> arguments) {
  constexpr std::array<std::string_view, 3> kNames{"bash", "zsh", "fish"};
  const Shell* wanted = nullptr;
  std::string out;
  CommandLine line("rubato completion",
                   "Prints a script that makes a shell complete the commands and options of "
                   "rubato, the names that they take, and files.");
  line.operands(
      OperandCount::optional, "SHELL", fmt::format("the shell: {}", fmt::join(kNames, ", ")),
      [&](const std::string& text) {
        const auto found = std::ranges::find(kShells, text, &Shell::name);
        if (found == kShells.end()) throw Error(unknown_name_message("shell", text, kNames));
        wanted = &*found;
      },
      Words(kNames.begin(), kNames.end()));
  line.text("out", "DIR", "write the scripts of all shells below DIR, as they are installed", "",
            out);
  line.footer(
      "Installed programs have the scripts where shells look for them. For others:\n"
      "  source <(rubato completion bash)\n"
      "  source <(rubato completion zsh)\n"
      "  rubato completion fish | source");
  line.parse(arguments);
  if ((wanted != nullptr) == !out.empty()) {
    throw_error("{}; accepted: one of {}", out.empty() ? "no shell is named" : "too many arguments",
                fmt::join(kNames, ", "));
  }
  if (wanted != nullptr) print_out(wanted->script());
  for (const Shell& shell : kShells) {
    if (!out.empty()) write_below(out, shell.installed, shell.script());
  }
  return 0;
}

}  // namespace rubato::app
