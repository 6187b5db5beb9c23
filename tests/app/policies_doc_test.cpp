// docs/policies.md: its commands run, and its table has all that there is.

#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/runs/run_configuration.hpp>

#include "app/doc_commands.hpp"
#include "app/run_program.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

TEST(PoliciesDoc, HasCommandsThatRun) {
  const std::string text = test::read_file(RUBATO_POLICIES_MD);
  const std::vector<std::string> commands = test::rubato_commands(text);
  for (const std::string& command : commands) {
    const test::TempFolder folder;
    const test::ProgramResult result = test::rubato(test::words_of(command), folder.path());
    EXPECT_EQ(result.code, 0) << command << "\n" << result.err;
    EXPECT_EQ(result.err, "") << command;
    EXPECT_NE(result.out, "") << command;
  }
  EXPECT_GE(commands.size(), 5U);
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
