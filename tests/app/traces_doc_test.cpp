// docs/traces.md: its files are read, its commands run, and its tables have all that there is.

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

class TracesDoc : public testing::Test {
 protected:
  // Writes the fragments that stand below the name of a file.
  void write_files() const {
    const std::regex file("`([a-z]+\\.[a-z]+)`:\n```\n([^`]*)```");
    for (std::sregex_iterator it(text_.begin(), text_.end(), file), end; it != end; ++it) {
      folder_.write((*it)[1].str(), (*it)[2].str());
    }
  }

  std::string text_ = test::read_file(RUBATO_TRACES_MD);
  const test::TempFolder folder_;
};

TEST_F(TracesDoc, HasCommandsThatRun) {
  write_files();
  // In the order in which files are made: `show trace.csv` comes behind `convert`.
  const std::vector<std::string> commands = test::rubato_commands(text_);
  for (const std::string& command : commands) {
    const test::ProgramResult result = test::rubato(test::words_of(command), folder_.path());
    EXPECT_EQ(result.code, 0) << command << "\n" << result.err;
    EXPECT_EQ(result.err, "") << command;
    EXPECT_NE(result.out, "") << command;
  }
  EXPECT_GE(commands.size(), 15U);
}

TEST_F(TracesDoc, HasEveryArgumentWithItsDefault) {
  for (const char* name : {"generators", "policies"}) {
    for (const Strategy& strategy : family(name).strategies) {
      std::smatch row;
      ASSERT_TRUE(
          std::regex_search(text_, row, std::regex("\n\\| `" + strategy.name + "` \\|[^\n]*")))
          << strategy.name;
      for (const Argument& argument : strategy.arguments) {
        const std::string text =
            argument.fallback.empty() ? argument.name : argument.name + "=" + argument.fallback;
        // Those of both policies have a row each.
        const bool own = row.str().find("`" + text + "`") != std::string::npos;
        const bool common = text_.find("\n| `" + text + "` |") != std::string::npos;
        EXPECT_TRUE(own || common) << strategy.name << ": " << text;
      }
    }
  }
}

}  // namespace
}  // namespace rubato
