// docs/options.md has the table of options, as it is: where it has not, running this test with
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

#include "app/evaluate_arguments.hpp"
#include "app/train_arguments.hpp"
#include "config/run_option.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

constexpr std::string_view kBegin = "<!-- generated from the table of options -->\n";
constexpr std::string_view kEnd = "<!-- end of what is generated -->\n";

// A cell of a table.
std::string cell(const std::string& text) {
  return std::regex_replace(text, std::regex(R"(\|)"), R"(\|)");
}

std::string code(const std::string& text) {
  return text.empty() ? "" : fmt::format("`{}`", cell(text));
}

std::string named(const std::string& name, const std::string& value) {
  return code(fmt::format("--{}{}{}", name, value.empty() ? "" : " ", value));
}

// What --help says, with options and words in quotes as code, and names of documents as links.
std::string prose(std::string text) {
  text = cell(text);
  text = std::regex_replace(text, std::regex("--[a-z][a-z-]*(=[a-z]+)?"), "`$&`");
  text = std::regex_replace(text, std::regex("'([^' ]+)'"), "`$1`");
  return std::regex_replace(text, std::regex("docs/([a-z]+[.]md)"), "[docs/$1]($1)");
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
  const std::string text = option.text(RunConfiguration()).value_or("");
  if (option.kind == OptionKind::flag) return text == "true" ? "on" : "off";
  return code(text);
}

std::string table_of(const std::vector<app::CommandLine::Description>& options,
                     const std::set<std::string>& left_out = {}) {
  std::string text = "| option | meaning | default |\n|---|---|---|\n";
  for (const auto& [name, value, help, shown_default] : options) {
    if (left_out.contains(name)) continue;
    text += fmt::format("| {} | {} | {} |\n", named(name, value), prose(help),
                        shown_default.empty() ? "" : code(shown_default));
  }
  return text;
}

// Those of the others that train has, too, do nothing there but say so, or are its own.
std::string own_table(app::TrainCommand command) {
  std::set<std::string> left_out;
  if (command != app::TrainCommand::train) {
    for (const auto& option : app::own_options(app::TrainCommand::train)) {
      left_out.insert(option.name);
    }
  }
  return table_of(app::own_options(command), left_out);
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
      text += fmt::format(
          "\n## {}\n| option | meaning | default | affects | resume |\n|---|---|---|---|---|\n",
          group);
    }
    text += fmt::format("| {} | {} | {} | {} | {} |\n", named(option.name, option.value),
                        prose(option.help), default_of(option), affected(option.affects),
                        on_resume(option.resume));
  }
  return text + "\n## Of the commands\nOf `rubato train`:\n\n" +
         own_table(app::TrainCommand::train) +
         "\n`rubato verify` takes `--config` and `--verbose` as well, and:\n\n" +
         own_table(app::TrainCommand::verify) +
         "\n`rubato calibrate` takes `--config` and `--verbose` as well, and:\n\n" +
         own_table(app::TrainCommand::calibrate) +
         fmt::format(
             "\n`rubato eval` and `rubato predict` take `--config`, of the options of a run "
             "{}, and:\n\n",
             taken_by_evaluation()) +
         table_of(app::own_options(app::EvaluateCommand::evaluate)) + "\n`rubato predict`:\n\n" +
         table_of(app::own_options(app::EvaluateCommand::predict), {"run"}) + "\n";
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
