// docs/watching.md: its commands run, one after the other.

#include <gmock/gmock.h>

#include "app/doc_commands.hpp"
#include "app/run_program.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

TEST(WatchingDoc, HasCommandsThatRun) {
  const test::TempFolder folder;
  const auto commands = test::rubato_commands(test::read_file(RUBATO_WATCHING_MD));
  EXPECT_EQ(commands.size(), 8U);
  for (const std::string& command : commands) {
    const test::ProgramResult result = test::rubato(test::words_of(command), folder.path());
    EXPECT_EQ(result.code, 0) << command << "\n" << result.err;
    EXPECT_EQ(result.err, "") << command;
  }
}

}  // namespace
}  // namespace rubato
