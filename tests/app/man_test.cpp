// `rubato man`: its pages have what the help has, and groff has nothing against them.

#include <cctype>
#include <filesystem>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "app/run_program.hpp"
#include "clients/app/line/exit_code.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::ProgramResult;
using test::TempFolder;
using testing::AllOf;
using testing::HasSubstr;

namespace fs = std::filesystem;

class Man : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = new TempFolder;
    const ProgramResult result = test::rubato({"man", "--out", "share"}, folder->path());
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.out, "");
  }
  static void TearDownTestSuite() { delete folder; }

  static std::vector<fs::path> pages() {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(folder->path() / "share/man/man1")) {
      all.push_back(entry.path());
    }
    return all;
  }

  // The words of the command that a page is of, behind "rubato".
  static std::vector<std::string> command_of(const fs::path& page) {
    std::vector<std::string> words;
    std::string word;
    for (const char c : page.stem().string() + '-') {
      if (c != '-') {
        word += c;
        continue;
      }
      if (word != "rubato") words.push_back(word);
      word.clear();
    }
    return words;
  }

  // Without line breaks, which may stand between the values of an option, too.
  static std::string unbroken(const std::string& text) {
    return std::regex_replace(text, std::regex("[ \n]+"), "");
  }

  // As a terminal shows it, without bold letters.
  static std::string shown(const fs::path& page) {
    const ProgramResult result =
        test::shell(fmt::format("groff -man -Tutf8 -P-cbou -rHY=0 -dAD=l '{}'", page.string()));
    EXPECT_EQ(result.err, "");
    return unbroken(result.out);
  }

  static const TempFolder* folder;
};
const TempFolder* Man::folder = nullptr;

bool has_groff() {
  return test::shell("command -v groff").code == 0;
}

TEST_F(Man, HasAPageForEveryCommand) {
  EXPECT_GT(pages().size(), 20U);
  for (const fs::path& page : pages()) {
    std::vector<std::string> arguments = command_of(page);
    const std::string text = test::read_file(page);
    std::vector<std::string> help = arguments;
    help.emplace_back("--help");
    EXPECT_EQ(test::rubato(help).code, 0) << page;
    arguments.insert(arguments.begin(), "man");
    EXPECT_EQ(test::rubato(arguments).out, text) << page;
  }
}

TEST_F(Man, IsWellFormed) {
  if (!has_groff()) GTEST_SKIP() << "there is no groff";
  for (const fs::path& page : pages()) {
    const ProgramResult result =
        test::shell(fmt::format("groff -ww -man -Tutf8 '{}'", page.string()));
    EXPECT_EQ(result.code, 0);
    EXPECT_EQ(result.err, "") << page;
  }
}

// Every word of the help, in its order within what is one paragraph there.
TEST_F(Man, SaysAllThatTheHelpSays) {
  if (!has_groff()) GTEST_SKIP() << "there is no groff";
  for (const fs::path& page : pages()) {
    std::vector<std::string> arguments = command_of(page);
    arguments.emplace_back("--help");
    const std::string help = test::rubato(arguments).out;
    const std::string text = shown(page);
    int options = 0;
    const std::regex option("\n  (-h, )?--([^\n]*?)(  +|\n {26})([^\n]+)");
    for (std::sregex_iterator it(help.begin(), help.end(), option), end; it != end; ++it) {
      const std::string words = std::regex_replace((*it)[4].str(), std::regex("`"), "");
      EXPECT_THAT(text, AllOf(HasSubstr(unbroken((*it)[1].str() + "--" + (*it)[2].str())),
                              HasSubstr(unbroken(words))))
          << page;
      ++options;
    }
    const bool is_group = help.find("\nCommands:") != std::string::npos;
    EXPECT_TRUE(options > 0 || is_group) << page;
    const std::regex example("\n  (rubato [^\n]*)");
    for (std::sregex_iterator it(help.begin(), help.end(), example), end; it != end; ++it) {
      EXPECT_THAT(text, HasSubstr(unbroken((*it)[1].str()))) << page;
    }
  }
}

TEST_F(Man, ShowsWhatStandsInItsSections) {
  const std::string page = test::rubato({"man", "train"}).out;
  EXPECT_THAT(page, AllOf(HasSubstr(".TH RUBATO-TRAIN 1 "),
                          HasSubstr(".SH NAME\nrubato\\-train \\- train a model under a trace\n"),
                          HasSubstr(".SH EXIT STATUS\nExit codes: 2 for a mistake"),
                          HasSubstr(".SH EXAMPLES\n.EX\nrubato train\n"),
                          HasSubstr(".SS Data and model\n")));
  EXPECT_THAT(
      test::rubato({"man", "launch"}).out,
      HasSubstr(".SH SYNOPSIS\n\\fBrubato launch\\fR [\\fIOPTIONS\\fR] \\-\\- \\fBtrain\\fR "
                "\\fIOPTIONS\\fR\n"));
  EXPECT_THAT(test::rubato({"man", "eval"}).out, HasSubstr("[\\fIRUN\\fR] [\\fIOPTIONS\\fR]"));
}

// docs/runs.md has the exit codes as the page of the program has them, and no others.
TEST(ExitCodes, AreThoseOfTheDocument) {
  const std::string doc = test::read_file(RUBATO_RUNS_MD);
  const std::string page = test::rubato({"man"}).out;
  for (const auto& [code, meaning] : app::exit_codes()) {
    const std::string number = fmt::to_string(static_cast<int>(code));
    EXPECT_THAT(page, HasSubstr(fmt::format(".TP\n\\fB{}\\fR\n", number)));
    std::string words(meaning);
    words = std::regex_replace(words, std::regex("\\|"), "\\|");
    const bool is_signal = code >= app::ExitCode::hung_up;
    EXPECT_THAT(doc, HasSubstr(is_signal ? words : fmt::format("\n| {} | {} |\n", number, words)));
  }
  const std::regex row("\n\\| [0-9]+(, [0-9]+)* \\|");
  const auto rows = std::distance(std::sregex_iterator(doc.begin(), doc.end(), row), {});
  // Those of signals have one row.
  EXPECT_EQ(rows + 2, std::ssize(app::exit_codes()));
}

TEST(ManCommand, SaysWhatIsWrong) {
  EXPECT_EQ(test::rubato({"man", "trian"}).code, 2);
  EXPECT_THAT(test::rubato({"man", "trian"}).err, HasSubstr("did you mean 'train'?"));
  EXPECT_EQ(test::rubato({"man", "train", "show"}).err,
            "rubato man: train has no command 'show'; accepted: train alone\n");
  EXPECT_EQ(test::rubato({"man", "train", "--out", "x"}).code, 2);
}

}  // namespace
}  // namespace rubato
