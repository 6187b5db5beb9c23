#include <array>
#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include "base/core/text/text.hpp"

namespace rubato {
namespace {

// Returns what a shell makes of the word.
std::string read_by(const std::string& shell, const std::string& word) {
  const std::string command = shell + " -c \"$(cat <<'END'\nprintf %s " + word + "\nEND\n)\"";
  FILE* const pipe = popen(command.c_str(), "r");
  std::string text;
  std::array<char, 256> buffer{};
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) {
    text.append(buffer.data(), count);
  }
  EXPECT_EQ(pclose(pipe), 0) << word;
  return text;
}

TEST(ShortLine, IsTheTextWhereThatIsShort) {
  EXPECT_EQ(short_line("läufe/a b.csv"), "läufe/a b.csv");
  EXPECT_EQ(short_line(""), "");
  EXPECT_EQ(short_line(std::string(80, 'x')), std::string(80, 'x'));
  std::string umlauts;
  for (int i = 0; i < 80; ++i) umlauts += "ä";
  EXPECT_EQ(short_line(umlauts), umlauts);
}

TEST(ShortLine, IsOneLineThatSteersNothing) {
  EXPECT_EQ(short_line("a\nb\r\x1b[31m\xc2\x9b"), "a?b??[31m?");
}

// Letters of several bytes are not cut; bytes that are no letters end, too.
TEST(ShortLine, LeavesOutTheMiddleOfALongText) {
  EXPECT_EQ(short_line("begin" + std::string(5'000, 'x') + "\nend"),
            "begin" + std::string(33, 'x') + "..." + std::string(34, 'x') + "?end");
  std::string umlauts;
  std::string kept;
  for (int i = 0; i < 81; ++i) umlauts += "ä";
  for (int i = 0; i < 38; ++i) kept += "ä";
  EXPECT_EQ(short_line(umlauts), kept + "..." + kept);
  EXPECT_LT(short_line(std::string(5'000, '\x80')).size(), 1'000U);
  std::string wide;
  std::string half;
  for (int i = 0; i < 41; ++i) wide += "\u5b66";
  for (int i = 0; i < 19; ++i) half += "\u5b66";
  EXPECT_EQ(short_line(wide), half + "..." + half) << "41 letters have 82 columns";
}

TEST(ShellQuoted, LeavesPlainWordsAlone) {
  EXPECT_EQ(shell_quoted("runs/2024-05-31T12-00-00Z"), "runs/2024-05-31T12-00-00Z");
  EXPECT_EQ(shell_quoted("csv:läufe/a_b.csv,x=1"), "csv:läufe/a_b.csv,x=1");
}

TEST(ShellQuoted, IsOneWordToAShell) {
  EXPECT_EQ(shell_quoted("sp ace"), "'sp ace'");
  EXPECT_EQ(shell_quoted("=ls"), "'=ls'") << "a command's path to zsh";
  for (const std::string word : {"sp ace", "it's", "$HOME", "a;b", "`x`", "~", "*", "", "\"", "\\",
                                 "a&b", "#c", "=ls", "(d)", "!e", "{f,g}"}) {
    EXPECT_EQ(read_by("sh", shell_quoted(word)), word);
    EXPECT_EQ(read_by("bash", shell_quoted(word)), word);
  }
  for (const std::string word : {"line\nbreak", "tab\tand 'quote'", "\x1b[31m"}) {
    EXPECT_EQ(printable(shell_quoted(word)), shell_quoted(word)) << "it is shown as it is pasted";
    EXPECT_EQ(read_by("bash", shell_quoted(word)), word);
  }
}

TEST(PythonQuoted, IsALiteral) {
  EXPECT_EQ(python_quoted("runs/first"), "'runs/first'");
  EXPECT_EQ(python_quoted("it's a \\"), "'it\\'s a \\\\'");
  EXPECT_EQ(python_quoted("\n"), "'\\x0a'");
}

}  // namespace
}  // namespace rubato
