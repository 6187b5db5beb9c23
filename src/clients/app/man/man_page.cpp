#include "man_page.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

#include <fmt/format.h>

#include "clients/app/help/help_text.hpp"
#include "clients/app/line/exit_code.hpp"
#include "troff.hpp"

namespace rubato::app {

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

}  // namespace rubato::app
