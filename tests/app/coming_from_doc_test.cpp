// docs/coming-from.md: its commands run, its options and links are there.

#include <filesystem>
#include <regex>
#include <string>

#include <gmock/gmock.h>

#include "app/doc_commands.hpp"
#include "app/run_program.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

TEST(ComingFromDoc, HasCommandsThatRun) {
  const std::string text = test::read_file(RUBATO_COMING_FROM_MD);
  const test::TempFolder folder;
  std::smatch trace;
  ASSERT_TRUE(std::regex_search(text, trace, std::regex("`trace\\.csv`:\n```\n([^`]*)```")));
  folder.write("trace.csv", trace[1].str());
  const auto commands = test::rubato_commands(text);
  EXPECT_EQ(commands.size(), 4U);
  for (const std::string& command : commands) {
    const test::ProgramResult result = test::rubato(test::words_of(command), folder.path());
    EXPECT_EQ(result.code, 0) << command << "\n" << result.err;
    EXPECT_EQ(result.err, "") << command;
  }
}

// In the column of what is here: options that the help lists.
TEST(ComingFromDoc, NamesOptionsThatThereAre) {
  const std::string text = test::read_file(RUBATO_COMING_FROM_MD);
  const test::TempFolder folder;
  const std::string help = test::rubato({"train", "--help"}, folder.path()).out;
  // All columns but the first.
  const std::regex row("\n\\| [^\n]*? \\| ([^\n]*)");
  const std::regex option("`(--[a-z-]+)");
  int options = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it) {
    const std::string cells = (*it)[1].str();
    for (std::sregex_iterator at(cells.begin(), cells.end(), option); at != end; ++at) {
      EXPECT_THAT(help, testing::HasSubstr((*at)[1].str())) << cells;
      ++options;
    }
  }
  EXPECT_GE(options, 30);
}

TEST(ComingFromDoc, LinksToWhatThereIs) {
  const fs::path page = RUBATO_COMING_FROM_MD;
  const std::string text = test::read_file(page);
  const std::regex link("\\]\\(([^)#:]+)(#[^)]*)?\\)");
  int links = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), link), end; it != end; ++it) {
    EXPECT_TRUE(fs::exists(page.parent_path() / (*it)[1].str())) << (*it)[1];
    ++links;
  }
  EXPECT_GE(links, 8);
}

}  // namespace
}  // namespace rubato
