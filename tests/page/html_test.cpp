// Nothing that a page shows is markup of its own.

#include "runs/page/html.hpp"

#include <gmock/gmock.h>

#include "support/matchers.hpp"

namespace rubato::page {
namespace {

TEST(Html, EscapesText) {
  EXPECT_EQ(escaped(R"(<script>"a" & 'b')"), "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;");
}

TEST(Html, EscapesJsonInAScript) {
  const nlohmann::ordered_json json{{"name", "</script><!--<script>"}, {"value", 1.5}};
  const std::string text = script_json(json);
  EXPECT_THAT(text, Not(HasSubstr("<")));
  EXPECT_EQ(nlohmann::ordered_json::parse(text), json);
}

TEST(Html, ReplacesBytesThatAreNoUtf8) {
  EXPECT_NO_THROW(static_cast<void>(script_json({{"name", "\xff\xfe"}})));
}

TEST(Html, EscapesEveryCellOfATable) {
  const AnswerDocument::Table hostile{.title = "<t>",
                                      .alignment = {Column::left, Column::right},
                                      .rows = {{"<h>", ""}, {"<k>", "<v>"}},
                                      .notes = {"<n>"}};
  const std::string html = table(hostile);
  for (const char* raw : {"<t>", "<h>", "<k>", "<v>", "<n>"})
    EXPECT_THAT(html, Not(HasSubstr(raw)));
  EXPECT_THAT(html,
              HasSubstr("<th scope=\"row\">&lt;k&gt;</th><td class=\"right\">&lt;v&gt;</td>"));
  EXPECT_THAT(facts("<t>", 2, {{"<k>", "<v>"}}), Not(ContainsRegex("<[tkv]>")));
  EXPECT_THAT(folded("<t>", "<v>"), Not(ContainsRegex("<[tv]>")));
  EXPECT_THAT(list({"<v>"}), Not(HasSubstr("<v>")));
}

}  // namespace
}  // namespace rubato::page
