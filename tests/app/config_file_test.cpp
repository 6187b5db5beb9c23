#include "app/config_file.hpp"

#include <iterator>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace rubato::app {
namespace {

// "key=value@line " of every entry.
std::string entries_of(std::string_view text) {
  const test::TempFolder folder;
  std::string entries;
  for (const auto& [key, value, line] : read_config(folder.write("c.toml", text))) {
    fmt::format_to(std::back_inserter(entries), "{}={}@{} ", key, value, line);
  }
  return entries;
}

// The message, with the folder cut off its front.
std::string error_in(std::string_view text) {
  const test::TempFolder folder;
  const auto file = folder.write("c.toml", text);
  const std::string message = test::error_of([&] { static_cast<void>(read_config(file)); });
  const std::size_t name = message.find("c.toml");
  return name == std::string::npos ? message : message.substr(name);
}

TEST(ConfigFile, ReadsNumbersWordsAndStrings) {
  EXPECT_EQ(
      entries_of("cores = 8\nlr=0.01\n\trule = \"root\" \ndata = 'mnist:a b'\nnesterov = true"),
      "cores=8@1 lr=0.01@2 rule=root@3 data=mnist:a b@4 nesterov=true@5 ");
  EXPECT_EQ(entries_of("rule = linear-momentum\n"), "rule=linear-momentum@1 ");
}

TEST(ConfigFile, SkipsCommentsAndBlankLines) {
  EXPECT_EQ(
      entries_of("# a comment\n\n  # another\ncores = 8 # eight\nout = \"a#b\" # not in it\n"),
      "cores=8@4 out=a#b@5 ");
}

TEST(ConfigFile, AcceptsWhatEditorsLeave) {
  EXPECT_EQ(entries_of("\xEF\xBB\xBF"
                       "cores = 8\r\n\r\nrule = \"root\"\r\n"),
            "cores=8@1 rule=root@3 ");
  EXPECT_EQ(entries_of(""), "");
}

TEST(ConfigFile, ResolvesEscapesInDoubleQuotesOnly) {
  EXPECT_EQ(entries_of(R"(a = "x\\y\"z\t!")"), "a=x\\y\"z\t!@1 ");
  EXPECT_EQ(entries_of(R"(a = 'x\y"z')"), "a=x\\y\"z@1 ");
  EXPECT_EQ(entries_of("a = \"\"\n"), "a=@1 ");
}

TEST(ConfigFile, ReadsBackEveryQuotedText) {
  for (const std::string text : {"", "plain", "a b#c", "qu\"ote's", "back\\slash", "tab\there",
                                 "new\nline", "umlaut \xC3\xA4"}) {
    EXPECT_EQ(entries_of("a = " + toml_string(text) + "  # end\n"), "a=" + text + "@1 ");
  }
}

TEST(ConfigFile, RejectsWhatIsMalformed) {
  const std::string accepted = "; accepted: a line such as 'cores = 8', a comment after '#'";
  EXPECT_EQ(error_in("cores = 8\ncores 8\n"), "c.toml:2: there is no '='" + accepted);
  EXPECT_EQ(error_in("[train]\ncores = 8\n"), "c.toml:1: sections mean nothing here" + accepted);
  for (const std::string line : {"= 8", "a b = 8", "\x1B[31m = 8", "\"a\" = 8"}) {
    EXPECT_EQ(error_in(line), "c.toml:1: there is no name before the '='" + accepted);
  }
  for (const std::string line :
       {"a =", "a = \"x", "a = 'x", "a = \"x\" y", "a = \"\\q\"", "a = \"x\\", "a = # nothing"}) {
    EXPECT_EQ(error_in(line), "c.toml:1: the value of 'a' is malformed" + accepted) << line;
  }
}

TEST(ConfigFile, RejectsAKeyThatStandsThereTwice) {
  EXPECT_EQ(error_in("cores = 8\n\ncores = 9\n"),
            "c.toml:3: 'cores' stands in line 1 already; accepted: each name once");
}

TEST(ConfigFile, RejectsWhatIsNoFile) {
  const test::TempFolder folder;
  for (const auto& path : {folder.path(), folder.path() / "none.toml"}) {
    EXPECT_EQ(test::error_of([&] { static_cast<void>(read_config(path)); }),
              "cannot read the configuration " + path.string() +
                  "; accepted: a file of lines such as 'cores = 8'");
  }
}

}  // namespace
}  // namespace rubato::app
