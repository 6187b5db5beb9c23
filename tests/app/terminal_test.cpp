// What is printed fits the terminal: no line is longer, and no word is broken.

#include <algorithm>
#include <array>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "app/on_terminal.hpp"
#include "app/run_program.hpp"
#include "base/core/text/text.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

constexpr std::array<unsigned short, 4> kNarrow{40, 50, 60, 79};

std::vector<std::string> shown_words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// The lines that a terminal has shown at some time.
std::vector<std::string> shown_lines(const std::string& text) {
  static const std::regex clear("\x1b\\[[?0-9]*[AJKhlm]");
  std::string plain = std::regex_replace(text, clear, "");
  std::ranges::replace(plain, '\r', '\n');
  std::istringstream stream(plain);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

void expect_fitting(const std::string& text, unsigned short columns, const std::string& arguments) {
  for (const std::string& line : shown_lines(text)) {
    // A word that is longer than the terminal is wide has a line of its own.
    if (shown_words(line).size() < 2) continue;
    EXPECT_LE(width_of(line), columns) << arguments << '\n' << line;
  }
}

TEST(NarrowTerminals, HaveTheWordsOfProseInLinesThatFit) {
  for (const char* const arguments :
       {"--help", "trace --help", "train --help", "compare --help", "simulate --help",
        "bench reduce --help", "list", "list rules data generators"}) {
    const std::vector<std::string> words = shown_words(test::rubato(arguments).out);
    for (const unsigned short columns : kNarrow) {
      const std::string text = test::on_terminal(columns, arguments);
      expect_fitting(text, columns, arguments);
      EXPECT_EQ(shown_words(text), words) << columns;
    }
  }
}

TEST(NarrowTerminals, HaveTablesPlotsAndRunsInLinesThatFit) {
  const test::TempFolder folder;
  for (const unsigned short columns : kNarrow) {
    for (const std::string& arguments :
         {std::string("plan"), std::string("trace show spot:most=16,life=0.2,seed=1"),
          std::string("simulate --model softmax --cores 2,8 --price 2 --cluster "
                      "substep=0.01,bytes=87600 --cluster substep=0.02,latency=0.001"),
          fmt::format("train --model softmax --epochs 1 --out run-{}", columns)}) {
      expect_fitting(test::on_terminal(columns, arguments, folder.path()), columns, arguments);
    }
  }
}

// With what says what a row is of, again.
TEST(NarrowTerminals, HaveColumnsThatDoNotFitBelow) {
  EXPECT_THAT(test::on_terminal(40, {"plan"}),
              AllOf(HasSubstr("\r\nepoch  max  samples  dropped\r\n    1  512  "),
                    HasSubstr("\r\nepoch  utilisation\r\n    1  ")));
  const std::string simulated =
      test::on_terminal(40,
                        "simulate --model softmax --cores 2,8 --minibatch 16,32 --cluster "
                        "substep=0.01");
  std::istringstream lines(simulated);
  int headers = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("epochs") == std::string::npos && line.find("restarts") == std::string::npos) {
      continue;
    }
    EXPECT_THAT(line, HasSubstr("cores  minibatch  "));
    ++headers;
  }
  EXPECT_EQ(headers, 2);
}

TEST(NarrowTerminals, HaveAnswersOfComparisonsInLinesThatFit) {
  const test::TempFolder folder;
  const std::string arguments = "compare --model softmax --epochs 1 --rule linear --jobs 1 --out e";
  const std::string text = test::on_terminal(40, arguments, folder.path());
  expect_fitting(text, 40, arguments);
  EXPECT_THAT(text, HasSubstr("What one seed cannot show"));
}

// A file or a pipe takes lines as they are.
TEST(NarrowTerminals, AreNotPipes) {
  const std::string text = test::rubato("plan").out;
  EXPECT_THAT(text, HasSubstr("median  max  samples  dropped  utilisation\n"));
}

}  // namespace
}  // namespace rubato
