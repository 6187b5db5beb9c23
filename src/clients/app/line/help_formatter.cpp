#include "help_formatter.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "output.hpp"

namespace rubato::app {

namespace {

// Where the text of an option begins; on a terminal that is narrower than kWide, further left.
constexpr std::size_t kTextColumn = 26;
constexpr std::size_t kNarrowTextColumn = 6;
constexpr std::size_t kWide = 66;

// A footer has running text, and examples, which are indented.
std::string footer_text(const std::string& footer, LineWidth width) {
  if (width.columns >= LineWidth::kProse) return footer;
  std::string text;
  std::string running;
  const auto end_running = [&] {
    if (!running.empty()) text += wrapped(running, 0, width) + '\n';
    running.clear();
  };
  for (std::size_t begin = 0; begin < footer.size();) {
    const std::size_t end = std::min(footer.find('\n', begin), footer.size());
    const std::string line = footer.substr(begin, end - begin);
    if (line.starts_with(' ')) {
      end_running();
      text += fitted(line, width) + '\n';
    } else {
      running += line + ' ';
    }
    begin = end + 1;
  }
  end_running();
  text.pop_back();
  return text;
}

std::string option_help(const CLI::Option& option, LineWidth width) {
  const std::size_t column = width.prose() < kWide ? kNarrowTextColumn : kTextColumn;
  std::string name = "  ";
  for (const std::string& letter : option.get_snames()) name += fmt::format("-{}, ", letter);
  if (!option.get_positional()) name += "--" + option.get_lnames().front();
  if (!option.get_type_name().empty()) {
    name += (option.get_positional() ? "" : " ") + option.get_type_name();
  }
  std::string text = option.get_description();
  if (!option.get_default_str().empty()) text += fmt::format(" [{}]", option.get_default_str());
  // A long name has its text on the next line.
  const std::string gap = name.size() + 2 <= column ? std::string(column - name.size(), ' ')
                                                    : '\n' + std::string(column, ' ');
  return fitted(name, width) + gap + wrapped(text, column, width) + '\n';
}

}  // namespace

std::string HelpFormatter::make_help(const CLI::App* app, std::string /*name*/,
                                     CLI::AppFormatMode /*mode*/) const {
  const LineWidth width = output_width();
  std::string help =
      fmt::format("{}\n\nUsage: {}", wrapped(app->get_description(), 0, width), app->get_name());
  for (const CLI::Option* option :
       app->get_options([](const CLI::Option* candidate) { return candidate->get_positional(); })) {
    help += fmt::format(" [{}...]", option->get_type_name());
  }
  help += " [OPTIONS]\n";
  for (const std::string& group : app->get_groups()) {
    help += fmt::format("\n{}:\n", group);
    for (const CLI::Option* option : app->get_options(
             [&group](const CLI::Option* candidate) { return candidate->get_group() == group; })) {
      help += option_help(*option, width);
    }
  }
  if (!app->get_footer().empty())
    help += fmt::format("\n{}\n", footer_text(app->get_footer(), width));
  return help;
}

}  // namespace rubato::app
