// docs/options.md lists the table of options, as it is: where it does not, running this test with
// RUBATO_UPDATE_DOCS=1 in the environment writes it.

#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/core/text/text.hpp"
#include "clients/app/train/evaluate.hpp"
#include "clients/app/train/train_arguments.hpp"
#include "runs/config/run_option.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

constexpr std::string_view kBegin = "<!-- generated from the table of options -->\n";
constexpr std::string_view kEnd = "<!-- end of what is generated -->\n";

std::string code(const std::string& text) {
  return text.empty() ? "" : fmt::format("`{}`", text);
}

std::string named(const std::string& name, const std::string& value) {
  return code(fmt::format("--{}{}{}", name, value.empty() ? "" : " ", value));
}

// In lines that fit a page, behind `first` and then `rest`.
std::string lines_of(const std::string& text, std::string_view first, std::string_view rest) {
  constexpr std::size_t kColumns = 120;
  std::string lines;
  for (const std::string& line : cell_lines(text, kColumns - rest.size())) {
    lines += fmt::format("{}{}\n", lines.empty() ? first : rest, line);
  }
  return lines;
}

std::string item(const std::string& text) {
  return lines_of(text, "- ", "  ");
}

// What --help says, with options and words in quotes as code, and names of documents as links.
std::string prose(std::string text) {
  text = std::regex_replace(text, std::regex("--[a-z][a-z-]*(=[a-z]+)?"), "`$&`");
  text = std::regex_replace(text, std::regex("'([^' ]+)'"), "`$1`");
  return std::regex_replace(text, std::regex("docs/([a-z]+)[.]md"), "[$1]($1.md)");
}

std::string_view affected(Affects affects) {
  switch (affects) {
    case Affects::bits:
      return "result";
    case Affects::speed:
      return "speed";
    case Affects::output:
      break;
  }
  return "output";
}

std::string_view on_resume(OnResume resume) {
  switch (resume) {
    case OnResume::fixed:
      return "fixed";
    case OnResume::free:
      return "may change";
    case OnResume::by_file:
    case OnResume::by_hash:
      return "by file";
    case OnResume::by_content:
      break;
  }
  return "by content";
}

std::string default_of(const RunOption& option) {
  if (!option.shown_default.empty()) return option.shown_default;
  std::string text = option.text(RunConfiguration()).value_or("");
  if (option.kind == OptionKind::flag) return text == "true" ? "on" : "off";
  return code(text);
}

std::string list_of(const std::vector<app::OptionHelp>& options,
                    const std::set<std::string>& left_out = {}) {
  std::string text;
  for (const app::OptionHelp& option : options) {
    if (left_out.contains(option.name)) continue;
    const std::string& fallback = option.shown_default;
    text += item(fmt::format("{}: {}{}", named(option.name, option.value), prose(option.help),
                             fallback.empty() ? "" : fmt::format(" (default {})", code(fallback))));
  }
  return text;
}

// Those of the others that train has, too, do nothing there but say so, or are its own.
std::string own_list(app::TrainCommand command) {
  std::set<std::string> left_out;
  if (command != app::TrainCommand::train) {
    for (const auto& option : app::own_options(app::TrainCommand::train)) {
      left_out.insert(option.name);
    }
  }
  return list_of(app::own_options(command), left_out);
}

// The names of the options of a run that eval and predict take.
std::string taken_by_evaluation() {
  std::string names;
  for (const RunOption* option : run_options(Commands::evaluate)) {
    names += fmt::format("{}`--{}`", names.empty() ? "" : ", ", option->name);
  }
  return names;
}

std::string generated() {
  std::string text;
  std::string group;
  for (const RunOption& option : run_options()) {
    if (option.group != group) {
      group = option.group;
      text += fmt::format("\n## {}\n", group);
    }
    const std::string fallback = default_of(option);
    text +=
        item(fmt::format("{}: {} ({}{}; {})", named(option.name, option.value), prose(option.help),
                         fallback.empty() ? "" : fmt::format("default {}; ", fallback),
                         affected(option.affects), on_resume(option.resume)));
  }
  return text + "\n## Options of single commands\n`rubato train`:\n\n" +
         own_list(app::TrainCommand::train) +
         "\n`rubato verify` also takes `--config`, `--verbose` and:\n\n" +
         own_list(app::TrainCommand::verify) +
         "\n`rubato calibrate` also takes `--config`, `--verbose` and:\n\n" +
         own_list(app::TrainCommand::calibrate) +
         lines_of(fmt::format("`rubato eval` and `rubato predict` take `--config`, the options of "
                              "a run {}, and:",
                              taken_by_evaluation()),
                  "\n", "") +
         "\n" + list_of(app::own_options(app::EvaluateCommand::evaluate)) +
         "\n`rubato predict`:\n\n" +
         list_of(app::own_options(app::EvaluateCommand::predict), {"run"}) + "\n";
}

TEST(OptionsDoc, HasTheTableOfOptions) {
  const std::string doc = test::read_file(RUBATO_OPTIONS_MD);
  const std::size_t begin = doc.find(kBegin);
  const std::size_t end = doc.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::string expected = doc.substr(0, begin + kBegin.size()) + generated() + doc.substr(end);
  if (std::getenv("RUBATO_UPDATE_DOCS") != nullptr) std::ofstream(RUBATO_OPTIONS_MD) << expected;
  EXPECT_EQ(test::read_file(RUBATO_OPTIONS_MD), expected)
      << "RUBATO_UPDATE_DOCS=1 in the environment of this test writes it";
}

}  // namespace
}  // namespace rubato
