#include "man_page.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/text/text.hpp"
#include "clients/app/commands.hpp"
#include "clients/app/line/command_line.hpp"
#include "clients/app/line/exit_code.hpp"
#include "clients/app/line/output.hpp"
#include "help.hpp"

namespace rubato::app {

namespace {

bool is_of_option(char c) {
  return std::islower(static_cast<unsigned char>(c)) != 0 || c == '-';
}

// Returns the end of the option that begins at `begin`, or `begin` if none does.
std::size_t end_of_option(std::string_view text, std::size_t begin) {
  const bool begins = begin == 0 || text[begin - 1] == ' ' || text[begin - 1] == '(';
  if (!begins || !text.substr(begin).starts_with("--")) return begin;
  std::size_t end = begin + 2;
  while (end < text.size() && is_of_option(text[end])) ++end;
  return end == begin + 2 ? begin : end;
}

}  // namespace

std::string troff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':  // a plain one is a hyphen, which does not paste as '-'
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      case '"':
        out += "\\(dq";
        break;
      case '|':  // a line may be broken between the values of an option
        out += "|\\:";
        break;
      case '.':  // a dot at the beginning of a line would be a request
        out += "\\&.";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string troff_bold(std::string_view text) {
  return text.empty() ? "" : fmt::format("\\fB{}\\fR", troff(text));
}

std::string troff_italic(std::string_view text) {
  return text.empty() ? "" : fmt::format("\\fI{}\\fR", troff(text));
}

std::string troff_prose(std::string_view text) {
  std::string out;
  std::size_t plain = 0;  // the text from here on is not written yet
  const auto mark = [&](std::size_t begin, std::size_t end, std::size_t next, std::size_t from) {
    out += troff(text.substr(plain, begin - plain)) + troff_bold(text.substr(from, end - from));
    plain = next;
  };
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = end_of_option(text, i);
    const std::size_t quote = text[i] == '`' ? text.find('`', i + 1) : std::string_view::npos;
    if (end != i) {
      mark(i, end, end, i);
    } else if (quote != std::string_view::npos) {
      mark(i, quote, quote + 1, i + 1);
    }
    i = std::max(i + 1, plain);
  }
  return out + troff(text.substr(plain));
}

namespace {

// The name of the page of a command: "rubato-trace-show".
std::string page_name(std::string name) {
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string reference(const std::string& name) {
  return fmt::format(".BR {} (1)", troff(page_name(name)));
}

// The parts of the footer that belong to each section.
struct Remarks {
  std::string options;
  std::string exit_codes;
  std::string examples;
};

Remarks remarks_of(const CommandHelp& help) {
  constexpr std::string_view kCodes = "Exit code";
  Remarks remarks;
  for (const FooterLine& line : footer_lines(help.footer)) {
    if (line.is_example) {
      // Continuation lines keep their further indent.
      remarks.examples += troff(std::string_view(line.text).substr(2)) + '\n';
      continue;
    }
    std::string text = line.text;
    const std::size_t codes = text.find(kCodes);
    if (codes != std::string::npos) {
      remarks.exit_codes += troff_prose(std::string_view(text).substr(codes)) + '\n';
      text.erase(codes);
    }
    for (const std::string_view heading : {"Examples:", "Example:"}) {
      const std::size_t begin = text.find(heading);
      if (begin != std::string::npos) text.erase(begin, heading.size());
    }
    while (text.ends_with(' ')) text.pop_back();
    if (!text.empty()) remarks.options += fmt::format(".PP\n{}\n", troff_prose(text));
  }
  return remarks;
}

std::string synopsis(const CommandHelp& help) {
  // Words in capitals are placeholders, in italics; others are typed as they are.
  std::string text = fmt::format(".SH SYNOPSIS\n{} ", troff_bold(help.name));
  std::string word;
  const auto end_word = [&] {
    const bool is_filled_in =
        !word.empty() && std::isupper(static_cast<unsigned char>(word.front())) != 0;
    text += is_filled_in ? troff_italic(word) : troff_bold(word);
    word.clear();
  };
  for (const char c : usage_of(help)) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      word += c;
      continue;
    }
    end_word();
    text += troff(std::string_view(&c, 1));
  }
  end_word();
  return text + '\n';
}

std::string commands_of(const CommandHelp& help) {
  if (help.commands.empty()) return {};
  std::string text = ".SH COMMANDS\n";
  for (const auto& [name, summary] : help.commands) {
    text += fmt::format(".TP\n{}\n{}: see\n{}.\n", troff_bold(name), troff_prose(summary),
                        reference(help.name + ' ' + name));
  }
  return text;
}

std::string option_of(const OptionHelp& option) {
  std::string name;
  if (!option.letter.empty()) name += troff_bold("-" + option.letter) + ", ";
  if (!option.name.empty()) name += troff_bold("--" + option.name);
  if (!option.name.empty() && !option.value.empty()) name += ' ';
  name += troff_italic(option.value);
  std::string text = troff_prose(option.help);
  if (!option.shown_default.empty()) text += troff(fmt::format(" [{}]", option.shown_default));
  return fmt::format(".TP\n{}\n{}\n", name, text);
}

std::string options_of(const CommandHelp& help) {
  if (help.options.empty()) return {};
  std::string text = ".SH OPTIONS\n";
  const std::string* group = nullptr;
  for (const OptionHelp& option : help.options) {
    if ((group == nullptr || *group != option.group) && option.group != "Options") {
      text += fmt::format(".SS {}\n", troff(option.group));
    }
    group = &option.group;
    text += option_of(option);
  }
  return text;
}

std::string exit_status(const CommandHelp& help, const Remarks& remarks) {
  if (!remarks.exit_codes.empty()) return ".SH EXIT STATUS\n" + remarks.exit_codes;
  if (help.commands.empty()) return {};
  std::string text = ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : exit_codes()) {
    text += fmt::format(".TP\n{}\n{}\n", troff_bold(fmt::to_string(static_cast<int>(code))),
                        troff_prose(meaning));
  }
  return text;
}

std::string see_also(const CommandHelp& help) {
  std::string text = ".SH SEE ALSO\n";
  const std::size_t end = help.name.find_last_of(' ');
  if (end != std::string::npos) text += reference(help.name.substr(0, end)) + ",\n";
  return text + "the guide of rubato, which is the folder docs of its source.\n";
}

}  // namespace

ManPage man_page(const Command& command) {
  const CommandHelp help = help_of(command);
  const Remarks remarks = remarks_of(help);
  const std::string name = page_name(help.name);
  const std::string_view summary =
      command.summary.empty() ? "elastic data-parallel training on one machine" : command.summary;
  std::string text = fmt::format(
      ".TH {} 1 \"\" \"rubato {}\" \"rubato\"\n.ds AD l\n.ad l\n.nh\n.SH NAME\n{} \\- {}\n",
      upper(name), RUBATO_VERSION, troff(name), troff(summary));
  text += synopsis(help);
  text += fmt::format(".SH DESCRIPTION\n{}\n{}", troff_prose(help.description), remarks.options);
  text += commands_of(help);
  text += options_of(help);
  text += exit_status(help, remarks);
  if (!remarks.examples.empty())
    text += fmt::format(".SH EXAMPLES\n.EX\n{}.EE\n", remarks.examples);
  return {name, text + see_also(help)};
}

std::vector<ManPage> man_pages(const Command& command) {
  std::vector<ManPage> pages{man_page(command)};
  if (command.commands == nullptr) return pages;
  for (const Command& one : command.commands()) {
    for (ManPage& page : man_pages(one)) pages.push_back(std::move(page));
  }
  return pages;
}

namespace {

// Returns the command `name` of `parent`, which is the program or a group of commands.
const Command& command_called(const Command& parent, const std::string& name) {
  if (parent.commands == nullptr) {
    throw Error(fmt::format("{} has no command '{}'; accepted: {} alone", parent.name,
                            short_line(name), parent.name));
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
