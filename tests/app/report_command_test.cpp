// `rubato report` as users run it, and docs/report.md: its commands run, one after the other.

#include <algorithm>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app/doc_commands.hpp"
#include "app/run_program.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

using test::ProgramResult;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ReportCommand : public testing::Test {
 protected:
  [[nodiscard]] ProgramResult rubato(const std::vector<std::string>& arguments) const {
    return test::rubato(arguments, folder_.path());
  }
  void train(const std::string& folder) const {
    const ProgramResult result =
        rubato({"train", "--model", "softmax", "--epochs", "1", "--quiet", "--out", folder});
    ASSERT_EQ(result.code, 0) << result.err;
  }
  [[nodiscard]] std::string page(const std::string& file = "report.html") const {
    return test::read_file(folder_.path() / file);
  }
  // What the scripts of a page read.
  [[nodiscard]] nlohmann::json data(const std::string& file = "report.html") const {
    const std::string html = page(file);
    const std::string begin = R"(<script type="application/json" id="data">)";
    const std::size_t at = html.find(begin) + begin.size();
    return nlohmann::json::parse(html.substr(at, html.find("</script>", at) - at));
  }
  test::TempFolder folder_;
};

TEST_F(ReportCommand, WritesAPageOfARun) {
  train("run");
  const ProgramResult result = rubato({"report", "run/"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, testing::MatchesRegex("report.html: [0-9]+ KiB\n"));
  EXPECT_THAT(page(), AllOf(HasSubstr("Trained softmax on digits with the rule linear"),
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
  EXPECT_EQ(rubato({"report", "all"}).code, 0);
  EXPECT_EQ(data()["runs"][0]["name"], "all/one");
  EXPECT_EQ(data()["runs"][1]["name"], "all/two");
  EXPECT_EQ(rubato({"report", "all", "all/one"}).code, 0);
  EXPECT_EQ(data()["runs"].size(), 3U);
}

TEST_F(ReportCommand, ShowsAHostileNameAsAName) {
  const std::string name = "<script>alert(1)<!--";
  train(name);
  EXPECT_EQ(rubato({"report", name, "-o", "page.html"}).code, 0);
  EXPECT_THAT(page("page.html"),
              AllOf(Not(HasSubstr("<script>alert")), HasSubstr("&lt;script&gt;alert(1)&lt;!--")));
  EXPECT_EQ(data("page.html")["runs"][0]["name"], name);
}

TEST_F(ReportCommand, ShowsAKilledRunAsFarAsItGoes) {
  train("run");
  fs::remove(folder_.path() / "run/summary.json");
  const std::string metrics = test::read_file(folder_.path() / "run/metrics.jsonl");
  // In the middle of a line, however long the numbers before it are.
  fs::resize_file(folder_.path() / "run/metrics.jsonl", metrics.find('\n', 4000) + 20);
  EXPECT_EQ(rubato({"report", "run"}).code, 0);
  EXPECT_THAT(page(), AllOf(HasSubstr("It has no summary: it was interrupted"),
                            HasSubstr("is half written and left out")));
}

TEST_F(ReportCommand, ShowsAnExperimentThatLacksARun) {
  const ProgramResult compared =
      rubato({"compare", "--model", "softmax", "--rule", "linear,root", "--seed", "1..2",
              "--epochs", "1", "--out", "exp", "--quiet"});
  ASSERT_EQ(compared.code, 0) << compared.err;
  ASSERT_EQ(rubato({"report", "exp"}).code, 0);
  EXPECT_THAT(page(), HasSubstr("<caption>trace elastic</caption>"));
  EXPECT_EQ(data()["sections"][0]["figures"][0]["rows"].size(), 2U);

  const std::string answer = test::read_file(folder_.path() / "exp/answer.json");
  fs::remove_all(folder_.path() / "exp/runs/elastic_root_seed-1");
  const ProgramResult result = rubato({"report", "exp", "--out=part.html"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(page("part.html"), HasSubstr("1 of 2 missing"));
  // It only reads.
  EXPECT_EQ(test::read_file(folder_.path() / "exp/answer.json"), answer);
  EXPECT_FALSE(fs::exists(folder_.path() / "exp/runs/elastic_root_seed-1"));
}

TEST_F(ReportCommand, SaysWhatIsWrong) {
  const auto says = [&](const std::vector<std::string>& arguments, int code,
                        const std::string& words) {
    const ProgramResult result = rubato(arguments);
    EXPECT_EQ(result.code, code);
    EXPECT_THAT(result.err, HasSubstr(words));
    EXPECT_LE(std::ranges::count(result.err, '\n'), 2) << result.err;
  };
  fs::create_directory(folder_.path() / "empty");
  fs::create_directory(folder_.path() / "exp");
  folder_.write("exp/design.toml", "");
  folder_.write("run/config.toml", "");
  folder_.write("run/metrics.jsonl", "");
  says({"report"}, 2,
       "no RUN|EXPERIMENT is given; accepted: rubato report RUN|EXPERIMENT... [OPTIONS]");
  says({"report", "none"}, 2, "none: no such folder");
  says({"report", "empty"}, 2, "empty: contains no runs");
  says({"report", "run", "exp"}, 2, "exp: is an experiment among other folders");
  says({"report", "run", "-o"}, 2, "--out");
  says({"report", "run", "--out="}, 2, "accepted: --out FILE");
  says({"report", "run", "-o", "none/report.html"}, 24, "cannot write");
  EXPECT_FALSE(fs::exists(folder_.path() / "report.html"));
}

TEST_F(ReportCommand, RunsTheCommandsOfItsPageInTheGuide) {
  const std::vector<std::string> commands =
      test::rubato_commands(test::read_file(RUBATO_REPORT_MD));
  EXPECT_EQ(commands.size(), 6U);
  for (const std::string& command : commands) {
    const ProgramResult result = rubato(test::words_of(command));
    EXPECT_EQ(result.code, 0) << command << "\n" << result.err;
  }
  EXPECT_THAT(page("answer.html"), HasSubstr("Best: "));
  EXPECT_EQ(data("rules.html")["runs"].size(), 2U);
}

}  // namespace
}  // namespace rubato
