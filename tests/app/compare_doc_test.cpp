// docs/compare.md: its file is read, its commands run, one after the other.

#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "app/run_program.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

TEST(CompareDoc, HasCommandsThatRun) {
  const std::string text = test::read_file(RUBATO_COMPARE_MD);
  const test::TempFolder folder;
  const std::regex file("`([a-z]+\\.[a-z]+)`:\n```[a-z]*\n([^`]*)```");
  for (std::sregex_iterator it(text.begin(), text.end(), file), end; it != end; ++it) {
    folder.write((*it)[1].str(), (*it)[2].str());
  }
  const std::regex command("\n\\$ rubato ([^\n]+)");
  int commands = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), command), end; it != end; ++it) {
    std::istringstream words((*it)[1].str());
    std::vector<std::string> arguments;
    for (std::string word; words >> word;) arguments.push_back(word);
    const test::ProgramResult result = test::rubato(arguments, folder.path());
    EXPECT_EQ(result.code, 0) << (*it)[1] << "\n" << result.err;
    EXPECT_EQ(result.err, "") << (*it)[1];
    EXPECT_NE(result.out, "") << (*it)[1];
    ++commands;
  }
  EXPECT_GE(commands, 4);
}

}  // namespace
}  // namespace rubato
