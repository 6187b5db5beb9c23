#include "completion_command.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/parse.hpp>

#include "clients/app/commands.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/output.hpp"
#include "completions.hpp"
#include "shells.hpp"

namespace rubato::app {

namespace {

std::vector<std::string> shell_names() {
  std::vector<std::string> names;
  for (const Shell& shell : shells()) names.emplace_back(shell.name);
  return names;
}

const Shell& shell_called(const std::string& name) {
  const auto all = shells();
  const auto found = std::ranges::find(all, name, &Shell::name);
  if (found != all.end()) return *found;
  const std::vector<std::string> names = shell_names();
  const std::vector<std::string_view> views(names.begin(), names.end());
  throw Error(unknown_name_message("shell", name, views));
}

}  // namespace

int completion_command(std::span<const std::string> arguments) {
  const auto border = std::ranges::find(arguments, "--");
  std::vector<const Shell*> wanted;
  std::string out;
  CommandLine line("rubato completion",
                   "Prints a script that makes a shell complete the commands and options of "
                   "rubato, the names that they take, and files and folders.");
  line.operands(
      OperandCount::optional, "SHELL",
      "the shell: " + fmt::to_string(fmt::join(shell_names(), ", ")),
      [&](const std::string& text) { wanted.push_back(&shell_called(text)); }, shell_names());
  line.option("out", "DIR", "write the scripts of all shells below DIR, as they are installed", "",
              [&](const std::string& text) { out = text; });
  line.rest("[WORD...]");
  line.footer(
      "Installed programs have the scripts where shells look for them. For others:\n"
      "  source <(rubato completion bash)\n"
      "  source <(rubato completion zsh)\n"
      "  rubato completion fish | source\n"
      "The scripts ask `rubato completion -- WORD...` what completes the last of the\n"
      "words of a command line, from behind `rubato` to the cursor.");
  line.parse({arguments.begin(), border});
  const bool asks = border != arguments.end();
  const std::size_t wishes = wanted.size() + (out.empty() ? 0 : 1) + (asks ? 1 : 0);
  if (wishes != 1) {
    throw Error(fmt::format("{}; accepted: one of {}",
                            wishes == 0 ? "no shell is named" : "too many arguments",
                            fmt::join(shell_names(), ", ")));
  }
  if (asks) {
    print_out(lines_of(completions(program(), {border + 1, arguments.end()})));
    return 0;
  }
  if (!out.empty()) {
    for (const Shell& shell : shells()) write_below(out, shell.installed, shell.script);
    return 0;
  }
  print_out(wanted.front()->script);
  return 0;
}

}  // namespace rubato::app
