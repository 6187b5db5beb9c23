// docs/policies.md: its commands run, and its table has all that there is.

#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/config/families.hpp>

#include "app/run_program.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

TEST(PoliciesDoc, HasCommandsThatRun) {
  const std::string text = test::read_file(RUBATO_POLICIES_MD);
  const std::regex command("\n\\$ rubato ([^\n]+)");
  int commands = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), command), end; it != end; ++it) {
    std::istringstream words((*it)[1].str());
    std::vector<std::string> arguments;
    for (std::string word; words >> word;) arguments.push_back(word);
    const test::TempFolder folder;
    const test::ProgramResult result = test::rubato(arguments, folder.path());
    EXPECT_EQ(result.code, 0) << (*it)[1] << "\n" << result.err;
    EXPECT_EQ(result.err, "") << (*it)[1];
    EXPECT_NE(result.out, "") << (*it)[1];
    ++commands;
  }
  EXPECT_GE(commands, 5);
}

TEST(PoliciesDoc, HasEveryArgumentWithItsDefault) {
  const std::string text = test::read_file(RUBATO_POLICIES_MD);
  for (const Strategy& strategy : family("batch-policies").strategies) {
    std::smatch row;
    ASSERT_TRUE(std::regex_search(text, row, std::regex("\n\\| `" + strategy.name + "` \\|[^\n]*")))
        << strategy.name;
    for (const Argument& argument : strategy.arguments) {
      const std::string wanted =
          argument.fallback.empty() ? argument.name : argument.name + "=" + argument.fallback;
      EXPECT_THAT(row.str(), testing::HasSubstr("`" + wanted + "`")) << strategy.name;
    }
  }
}

}  // namespace
}  // namespace rubato
