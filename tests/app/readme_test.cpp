// What README.md and docs/runs.md say of the program.
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "app/doc_commands.hpp"
#include "app/run_program.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::ProgramResult;
using test::TempFolder;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

std::string readme() {
  return test::read_file(RUBATO_README);
}

// What matches the first group of `pattern` in `text`, in order.
std::vector<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern, std::regex::ECMAScript | std::regex::multiline);
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match) {
    found.push_back(match->str(1));
  }
  return found;
}

std::set<std::string> options_in(const std::string& text) {
  const auto found = matches(text, R"((?:^|[\s`])(--[a-z][a-z-]+))");
  return {found.begin(), found.end()};
}

// What they print.
std::string run_all(const std::vector<std::string>& commands, const TempFolder& folder) {
  EXPECT_THAT(commands, Not(SizeIs(0)));
  std::string out;
  for (const std::string& command : commands) {
    const ProgramResult result = test::rubato(test::words_of(command), folder.path());
    EXPECT_EQ(result.code, 0) << command << "\n" << result.err;
    EXPECT_NE(result.out, "") << command;
    out += result.out;
  }
  return out;
}

TEST(Readme, ItsCommandsDoWhatItSays) {
  const TempFolder folder;
  const std::string out = run_all(test::rubato_commands(readme()), folder);
  // The numbers are of the CPU's kernels.
  for (const char* line : {"trace spot:most=16,seed=1\n",
                           "  accuracy %    rank   to the baseline  p (Holm)  verdict\n",
                           "Best: linear. All others are worse.\n"}) {
    EXPECT_THAT(readme(), HasSubstr(line));
    EXPECT_THAT(out, HasSubstr(line));
  }
}

// Those of its last table that are whole: nothing in capitals is to be filled in.
TEST(Readme, ItsTableHasCommandsThatRun) {
  std::vector<std::string> commands;
  for (const std::string& command : matches(readme(), R"(\| `rubato ([^`A-Z]+)` \|)")) {
    if (command != "doctor") commands.push_back(command);
  }
  const TempFolder folder;
  run_all(commands, folder);
  // It may find something.
  EXPECT_THAT(test::rubato({"doctor"}, folder.path()).out, HasSubstr("oneTBB"));
}

TEST(Readme, NamesOptionsThatExist) {
  // Of ./bootstrap.
  std::set<std::string> known{"--all"};
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"train"}, {"compare"}, {"plan"}, {"bench", "reduce"}}) {
    std::vector<std::string> arguments = command;
    arguments.emplace_back("--help");
    known.merge(options_in(test::rubato(arguments).out));
  }
  const auto named = matches(readme(), R"((--[a-z][a-z-]+)(?![a-z_-]))");
  EXPECT_THAT(named, Not(SizeIs(0)));
  for (const std::string& option : named) EXPECT_TRUE(known.contains(option)) << option;
}

TEST(RunsDoc, HasCommandsThatRun) {
  const TempFolder folder;
  run_all(test::rubato_commands(test::read_file(RUBATO_RUNS_MD)), folder);
}

}  // namespace
}  // namespace rubato
