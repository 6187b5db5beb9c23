#include "man_command.hpp"

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "clients/app/commands.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/output.hpp"
#include "man_page.hpp"

namespace rubato::app {

namespace {

// Returns the command `name` of `parent`, which is the program or a group of commands.
const Command& command_called(const Command& parent, const std::string& name) {
  if (parent.commands == nullptr) {
    throw Error(
        fmt::format("{} has no command '{}'; accepted: {} alone", parent.name, name, parent.name));
  }
  return find_command("command", name, parent.commands());
}

}  // namespace

int man_command(std::span<const std::string> arguments) {
  const Command* shown = &program();
  std::string out;
  std::vector<std::string> names;
  for (const Command& command : program().commands()) names.emplace_back(command.name);
  CommandLine line("rubato man",
                   "Prints the page of the manual for a command, or for rubato itself, in troff.");
  line.operands(
      OperandCount::any, "COMMAND", "the command, such as train, or trace show [rubato itself]",
      [&](const std::string& text) { shown = &command_called(*shown, text); }, names);
  line.option("out", "DIR", "write all pages below DIR, as they are installed", "",
              [&](const std::string& text) { out = text; });
  line.footer(
      "Installed programs have the pages where `man` looks for them. For others:\n"
      "  rubato man train | man -l -");
  line.parse(arguments);
  if (out.empty()) {
    print_out(man_page(*shown).text);
    return 0;
  }
  if (shown != &program()) {
    throw Error("--out: all pages are written; accepted: without the name of a command");
  }
  for (const ManPage& page : man_pages(program())) {
    write_below(out, fmt::format("man/man1/{}.1", page.name), page.text);
  }
  return 0;
}

}  // namespace rubato::app
