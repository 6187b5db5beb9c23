#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "app/run_program.hpp"
#include "support/idx_images.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::ProgramResult;
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

// The lines of the README's trace again and again, numbered anew.
std::string long_trace() {
  const auto rows = matches(readme(), R"(^\d+,(\d+,\d+)$)");
  EXPECT_THAT(rows, Not(SizeIs(0)));
  std::string trace = "step,batchsize,cores\n";
  for (std::size_t step = 0; step < 1000; ++step) {
    trace += fmt::format("{},{}\n", step, rows[step % rows.size()]);
  }
  return trace;
}

TEST(Readme, ItsCommandsDoWhatItSays) {
  const auto commands = matches(readme(), R"(^\$ rubato (.+)$)");
  ASSERT_THAT(commands, Not(SizeIs(0)));
  const test::TempFolder folder;
  folder.write("trace.csv", long_trace());
  test::write_idx_images(folder, "data/mnist", "train", 640, 28);
  test::write_idx_images(folder, "data/mnist", "t10k", 100, 28);
  for (const std::string& command : commands) {
    std::istringstream words(command);
    std::vector<std::string> arguments;
    for (std::string word; words >> word;) arguments.push_back(word);
    const ProgramResult result = test::rubato(arguments, folder.path());
    EXPECT_EQ(result.code, 0) << command << "\n" << result.err;
    // What it measured with stands there, so that its output can be an argument.
    if (!command.starts_with("calibrate")) {
      EXPECT_EQ(result.err, "") << command;
    }
    EXPECT_NE(result.out, "") << command;
  }
}

TEST(Readme, NamesOptionsThatExist) {
  std::set<std::string> known{"--help", "--version", "--networks"};
  for (const std::vector<std::string>& command : {std::vector<std::string>{"train"},
                                                  {"verify"},
                                                  {"plan"},
                                                  {"simulate"},
                                                  {"calibrate"},
                                                  {"compare"},
                                                  {"trace", "show"},
                                                  {"bench", "reduce"}}) {
    std::vector<std::string> arguments = command;
    arguments.emplace_back("--help");
    known.merge(options_in(test::rubato(arguments).out));
  }
  const auto named = matches(readme(), R"((--[a-z][a-z-]+)(?![a-z_-]))");
  EXPECT_THAT(named, Not(SizeIs(0)));
  for (const std::string& option : named) EXPECT_TRUE(known.contains(option)) << option;
}

}  // namespace
}  // namespace rubato
