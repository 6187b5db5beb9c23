// docs/traces.md: its files are read, its commands run, and its tables have all that there is.

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
  const std::regex command("\n\\$ rubato ([^\n]+)");
  int commands = 0;
  for (std::sregex_iterator it(text_.begin(), text_.end(), command), end; it != end; ++it) {
    std::istringstream words((*it)[1].str());
    std::vector<std::string> arguments;
    for (std::string word; words >> word;) arguments.push_back(word);
    const test::ProgramResult result = test::rubato(arguments, folder_.path());
    EXPECT_EQ(result.code, 0) << (*it)[1] << "\n" << result.err;
    EXPECT_EQ(result.err, "") << (*it)[1];
    EXPECT_NE(result.out, "") << (*it)[1];
    ++commands;
  }
  EXPECT_GE(commands, 15);
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
