// `rubato report` as users run it, and docs/report.md: its commands run, one after the other.

#include <algorithm>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app/command_test.hpp"
#include "app/doc_commands.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

class ReportCommand : public test::CommandTest {
 protected:
  void train(const std::string& folder) const {
    succeeds("train --model softmax --epochs 1 --quiet --out " + folder);
  }
  // What the scripts of a page read.
  [[nodiscard]] nlohmann::json data(const std::string& file = "report.html") const {
    const std::string html = content(file);
    const std::string begin = R"(<script type="application/json" id="data">)";
    const std::size_t at = html.find(begin) + begin.size();
    return nlohmann::json::parse(html.substr(at, html.find("</script>", at) - at));
  }
};

TEST_F(ReportCommand, WritesAPageOfARun) {
  train("run");
  EXPECT_THAT(succeeds("report run/"), MatchesRegex("report.html: [0-9]+ KiB\n"));
  EXPECT_THAT(content("report.html"),
              AllOf(HasSubstr("Trained softmax on digits with the rule linear"),
                    HasSubstr("var d3={version:"), HasSubstr("makePage();"),
                    HasSubstr("rubato train --config run/config.toml")));
  const nlohmann::json charts = data();
  EXPECT_EQ(charts["runs"][0]["name"], "run");
  EXPECT_EQ(charts["runs"][0]["steps"]["numbers"]["loss"].size(),
            charts["runs"][0]["steps"]["axes"]["steps"].size());
}

TEST_F(ReportCommand, TakesAFolderForTheRunsInIt) {
  train("all/one");
  train("all/two");
  succeeds("report all");
  EXPECT_EQ(data()["runs"][0]["name"], "all/one");
  EXPECT_EQ(data()["runs"][1]["name"], "all/two");
  succeeds("report all all/one");
  EXPECT_EQ(data()["runs"].size(), 3U);
}

TEST_F(ReportCommand, ShowsAHostileNameAsAName) {
  const std::string name = "<script>alert(1)<!--";
  train(name);
  succeeds("report " + name + " -o page.html");
  EXPECT_THAT(content("page.html"),
              AllOf(Not(HasSubstr("<script>alert")), HasSubstr("&lt;script&gt;alert(1)&lt;!--")));
  EXPECT_EQ(data("page.html")["runs"][0]["name"], name);
}

TEST_F(ReportCommand, ShowsAKilledRunAsFarAsItGoes) {
  train("run");
  fs::remove(file("run/summary.json"));
  const std::string metrics = content("run/metrics.jsonl");
  // In the middle of a line, however long the numbers before it are.
  fs::resize_file(file("run/metrics.jsonl"), metrics.find('\n', 4000) + 20);
  succeeds("report run");
  EXPECT_THAT(content("report.html"), AllOf(HasSubstr("It has no summary: it was interrupted"),
                                            HasSubstr("is half written and left out")));
}

TEST_F(ReportCommand, ShowsAnExperimentThatLacksARun) {
  succeeds(
      "compare --model softmax --rule linear,root --seed 1..2 --epochs 1 --tune never --out exp "
      "--quiet");
  succeeds("report exp");
  EXPECT_THAT(content("report.html"), HasSubstr("<caption>trace elastic</caption>"));
  EXPECT_EQ(data()["sections"][0]["figures"][0]["rows"].size(), 2U);

  const std::string answer = content("exp/answer.json");
  fs::remove_all(file("exp/runs/elastic_root_seed-1"));
  succeeds("report exp --out=part.html");
  EXPECT_THAT(content("part.html"), HasSubstr("1 of 2 missing"));
  // It only reads.
  EXPECT_EQ(content("exp/answer.json"), answer);
  EXPECT_FALSE(fs::exists(file("exp/runs/elastic_root_seed-1")));
}

TEST_F(ReportCommand, SaysWhatIsWrong) {
  fs::create_directory(file("empty"));
  fs::create_directory(file("exp"));
  folder_.write("exp/design.toml", "");
  folder_.write("run/config.toml", "");
  folder_.write("run/metrics.jsonl", "");
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "no RUN|EXPERIMENT is given; accepted: rubato report RUN|EXPERIMENT... [OPTIONS]"},
           {"none", "none: no such folder"},
           {"empty", "empty: contains no runs"},
           {"run exp", "exp: is an experiment among other folders"},
           {"run -o", "--out"},
           {"run --out=", "accepted: --out FILE"}}) {
    const std::string error = refusal("report " + arguments);
    EXPECT_THAT(error, HasSubstr(message));
    EXPECT_LE(std::ranges::count(error, '\n'), 2) << error;
  }
  EXPECT_EQ(rubato("report run -o none/report.html").code, 24);
  EXPECT_FALSE(fs::exists(file("report.html")));
}

TEST_F(ReportCommand, RunsTheCommandsOfItsPageInTheGuide) {
  const std::vector<std::string> commands =
      test::rubato_commands(test::read_file(RUBATO_REPORT_MD));
  EXPECT_EQ(commands.size(), 6U);
  for (const std::string& command : commands) succeeds(command);
  EXPECT_THAT(content("answer.html"), HasSubstr("Best: "));
  EXPECT_EQ(data("rules.html")["runs"].size(), 2U);
}

}  // namespace
}  // namespace rubato
