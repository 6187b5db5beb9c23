// docs/models.md: the model that it exports is trained by its commands.

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "app/doc_commands.hpp"
#include "app/run_program.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

TEST(ModelsDoc, HasCommandsThatRun) {
  const std::string page = test::read_file(RUBATO_MODELS_MD);
  constexpr std::string_view kFence = "```python export\n";
  const std::size_t fence = page.find(kFence);
  ASSERT_NE(fence, std::string::npos);
  const std::size_t begin = fence + kFence.size();
  const test::TempFolder folder;
  folder.write("export.py", page.substr(begin, page.find("```", begin) - begin));
  if (test::run_program("/usr/bin/python3", {"-c", "import torch"}).code != 0) {
    GTEST_SKIP() << "/usr/bin/python3 has no module torch here";
  }
  const auto python = test::run_program("/usr/bin/python3", {"export.py"}, folder.path());
  ASSERT_EQ(python.code, 0) << python.err;
  const std::vector<std::string> commands = test::rubato_commands(page);
  for (const std::string& command : commands) {
    const test::ProgramResult result = test::rubato(test::words_of(command), folder.path());
    EXPECT_EQ(result.code, 0) << command << "\n" << result.err;
    EXPECT_EQ(result.err, "") << command;
  }
  EXPECT_GE(commands.size(), 3U);
}

}  // namespace
}  // namespace rubato
