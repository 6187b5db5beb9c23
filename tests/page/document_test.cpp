// A page as a file: its parts, and the policy under which a browser runs them.

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/base/error.hpp>

#include "base/state/sha256.hpp"
#include "runs/page/html.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato::page {
namespace {

std::string base64(const Sha256::Digest& digest) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < digest.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      bits = bits << 8U | (i + j < digest.size() ? digest.at(i + j) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) text += letters[bits >> (18 - 6 * j) & 63U];
  }
  // 32 bytes are one short of eleven times three.
  text.back() = '=';
  return text;
}

// What stands in each element of that tag.
std::vector<std::string> texts_in(const std::string& html, const std::string& tag) {
  std::vector<std::string> texts;
  const std::string begin = "<" + tag + ">";
  for (std::size_t at = 0; (at = html.find(begin, at)) != std::string::npos; ++at) {
    at += begin.size();
    texts.push_back(html.substr(at, html.find("</" + tag, at) - at));
  }
  return texts;
}

const Document& small() {
  static const Document document{.title = "<script>alert(1)</script>",
                                 .answer = "<p>It {{title}} learned.</p>\n",
                                 .charts = {{"name", "</script><script>alert(2)</script>"}},
                                 .end = "<p>The end.</p>\n"};
  return document;
}

TEST(SecurityPolicy, HasTheHashesOfBrowsers) {
  // That of nothing is in every text about them.
  const std::string_view nothing;
  EXPECT_EQ(security_policy({&nothing, 1}, {}),
            "default-src 'none'; script-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; "
            "style-src; base-uri 'none'; form-action 'none'");
}

TEST(Document, HasThePolicyOfItsOwnScriptsAndStyles) {
  const std::string html = to_html(small(), "var d3 = 1;");
  const auto scripts = texts_in(html, "script");
  ASSERT_EQ(scripts.size(), 2U);
  EXPECT_EQ(scripts.front(), "var d3 = 1;");
  const auto styles = texts_in(html, "style");
  ASSERT_EQ(styles.size(), 1U);
  for (const std::string& text : {scripts[0], scripts[1], styles[0]}) {
    EXPECT_THAT(html, HasSubstr("'sha256-" + base64(Sha256::digest_of(text)) + "'"));
  }
  EXPECT_THAT(html, HasSubstr("content=\"default-src 'none'; script-src 'sha256-"));
  EXPECT_THAT(html, Not(HasSubstr("unsafe")));
}

TEST(Document, IsEscapedAndFilledInOnce) {
  const std::string html = to_html(small(), "var d3 = 1;");
  EXPECT_THAT(html, HasSubstr("<title>&lt;script&gt;alert(1)"));
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, HasSubstr("It {{title}} learned."));
  EXPECT_THAT(html, HasSubstr("Michael Bostock"));
}

TEST(Document, AsksForNothingFromOutside) {
  const std::string html = to_html(small(), "");
  for (const char* loading : {"src=", "@import", "url(", "fetch(", "XMLHttpRequest", "eval(",
                              "Function(", "innerHTML", " style=", "onclick="}) {
    EXPECT_THAT(html, Not(HasSubstr(loading)));
  }
}

TEST(ChartLibrary, HasToBeThere) {
  const test::TempFolder folder;
  try {
    static_cast<void>(read_chart_library(folder.path() / "d3.min.js"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("apt-get install libjs-d3"));
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
  }
}

TEST(ChartLibrary, CannotEndItsScript) {
  const test::TempFolder folder;
  for (const char* text : {"a</script>b", "<!-- a", "a\r\nb"}) {
    EXPECT_THROW(static_cast<void>(read_chart_library(folder.write("d3.js", text))), Error) << text;
  }
  EXPECT_EQ(read_chart_library(folder.write("d3.js", "a < b")), "a < b");
}

}  // namespace
}  // namespace rubato::page
