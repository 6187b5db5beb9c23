#include "app/help_formatter.hpp"

#include <vector>

#include <fmt/format.h>

#include "core/wrapped.hpp"

namespace rubato::app {

namespace {

constexpr std::size_t kTextColumn = 26;

std::string option_help(const CLI::Option& option) {
  std::string name = "  ";
  for (const std::string& letter : option.get_snames()) name += fmt::format("-{}, ", letter);
  if (!option.get_positional()) name += "--" + option.get_lnames().front();
  if (!option.get_type_name().empty()) {
    name += (option.get_positional() ? "" : " ") + option.get_type_name();
  }
  std::string text = option.get_description();
  if (!option.get_default_str().empty()) text += fmt::format(" [{}]", option.get_default_str());
  // A long name has its text on the next line.
  const std::string gap = name.size() + 2 <= kTextColumn
                              ? std::string(kTextColumn - name.size(), ' ')
                              : '\n' + std::string(kTextColumn, ' ');
  return name + gap + wrapped(text, kTextColumn) + '\n';
}

}  // namespace

std::string HelpFormatter::make_help(const CLI::App* app, std::string /*name*/,
                                     CLI::AppFormatMode /*mode*/) const {
  std::string help =
      fmt::format("{}\n\nUsage: {}", wrapped(app->get_description(), 0), app->get_name());
  for (const CLI::Option* option :
       app->get_options([](const CLI::Option* candidate) { return candidate->get_positional(); })) {
    help += fmt::format(" [{}...]", option->get_type_name());
  }
  help += " [OPTIONS]\n";
  for (const std::string& group : app->get_groups()) {
    help += fmt::format("\n{}:\n", group);
    for (const CLI::Option* option : app->get_options(
             [&group](const CLI::Option* candidate) { return candidate->get_group() == group; })) {
      help += option_help(*option);
    }
  }
  if (!app->get_footer().empty()) help += fmt::format("\n{}\n", app->get_footer());
  return help;
}

}  // namespace rubato::app
