// docs/compare.md: its file is read, its commands run, one after the other.

#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "app/doc_commands.hpp"
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
  const std::vector<std::string> commands = test::rubato_commands(text);
  for (const std::string& command : commands) {
    const test::ProgramResult result = test::rubato(test::words_of(command), folder.path());
    EXPECT_EQ(result.code, 0) << command << "\n" << result.err;
    EXPECT_EQ(result.err, "") << command;
    EXPECT_NE(result.out, "") << command;
  }
  EXPECT_GE(commands.size(), 4U);
}

}  // namespace
}  // namespace rubato
