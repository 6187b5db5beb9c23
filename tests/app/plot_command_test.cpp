// `rubato plot`: curves of runs in the terminal and as pictures.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "app/on_terminal.hpp"
#include "app/run_program.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using Arguments = std::vector<std::string>;

class PlotCommandTest : public testing::Test {
 protected:
  void train(const std::string& out, const Arguments& more = {}) const {
    Arguments all{"train", "--model", "softmax", "--epochs", "3", "--quiet", "--out", out};
    all.insert(all.end(), more.begin(), more.end());
    const test::ProgramResult result = test::rubato(all, folder_.path());
    ASSERT_EQ(result.code, 0) << result.err;
  }
  [[nodiscard]] std::string plotted(Arguments arguments) const {
    arguments.insert(arguments.begin(), "plot");
    const test::ProgramResult result = test::rubato(arguments, folder_.path());
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  }
  [[nodiscard]] std::string refused(Arguments arguments) const {
    arguments.insert(arguments.begin(), "plot");
    const test::ProgramResult result = test::rubato(arguments, folder_.path());
    EXPECT_EQ(result.code, 2) << result.out;
    return result.err;
  }

  test::TempFolder folder_;
};

TEST_F(PlotCommandTest, DrawsTheAccuracyOfARun) {
  train("runs/first");
  const std::string text = plotted({"runs/first"});
  EXPECT_THAT(text, StartsWith("test_accuracy, %\n"));
  EXPECT_THAT(text, ContainsRegex("\n +0 .*20k.*\n +samples\n$"));
  EXPECT_THAT(text, Not(HasSubstr("first"))) << "a single curve needs no name";
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST_F(PlotCommandTest, DrawsRunsOverOneAnother) {
  train("runs/linear");
  train("runs/root", {"--rule", "root"});
  const std::string text = plotted({"runs", "--y", "loss", "--x", "steps"});
  EXPECT_THAT(text, StartsWith("loss\n"));
  EXPECT_THAT(text, ContainsRegex("\n +steps\n +\\*\\* linear\n +\\+\\+ root\n$"));
  EXPECT_EQ(plotted({"runs/linear", "runs/root/", "--y", "loss", "--x", "steps"}), text);
}

TEST_F(PlotCommandTest, HasColoursOnATerminal) {
  train("runs/linear");
  train("runs/root", {"--rule", "root"});
  const std::string text = test::on_terminal(60, {"plot", "runs"}, folder_.path());
  EXPECT_THAT(text, HasSubstr("\x1b[33m"));
  EXPECT_THAT(test::on_terminal(60, {"plot", "runs"}, folder_.path(), {{"NO_COLOR", "1"}}),
              Not(HasSubstr("\x1b")));
}

TEST_F(PlotCommandTest, DrawsTheLossWhereThereIsNoAccuracy) {
  train("run", {"--model", "quadratic:dim=10"});
  EXPECT_THAT(plotted({"run"}), StartsWith("loss\n"));
  EXPECT_THAT(refused({"run", "--y", "accuracy"}),
              StartsWith("rubato plot: no run has test_accuracy over samples; accepted: "));
}

TEST_F(PlotCommandTest, DrawsOverModelledTime) {
  train("run", {"--clock", "virtual", "--price", "2"});
  EXPECT_THAT(plotted({"run", "--x", "hours"}), ContainsRegex("\n +hours\n$"));
  EXPECT_THAT(plotted({"run", "--x", "money"}), ContainsRegex("\n +money\n$"));
}

TEST_F(PlotCommandTest, WritesPictures) {
  train("runs/linear");
  train("runs/root", {"--rule", "root"});
  EXPECT_EQ(plotted({"runs", "--y", "loss", "--out", "loss.svg"}), "");
  // Cairo's versions put spaces into it, or not.
  std::string svg = test::read_file(folder_.path() / "loss.svg");
  std::erase(svg, ' ');
  EXPECT_THAT(svg, StartsWith("<?xml"));
  EXPECT_THAT(svg, HasSubstr("</svg>"));
  // A curve of each colour, and no third.
  EXPECT_THAT(svg, HasSubstr("rgb(0%,44."));
  EXPECT_THAT(svg, HasSubstr("rgb(90."));
  EXPECT_THAT(svg, Not(HasSubstr("rgb(0%,62")));
  EXPECT_EQ(plotted({"runs", "--y", "loss", "--out", "loss.png"}), "");
  const std::string png = test::read_file(folder_.path() / "loss.png");
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_GT(png.size(), 10'000U);
}

// Each choice is one curve, the mean of its seeds.
TEST_F(PlotCommandTest, DrawsTheChoicesOfAnExperiment) {
  const test::ProgramResult compared =
      test::rubato({"compare", "--model", "softmax", "--rule", "linear,root", "--seed", "1..3",
                    "--epochs", "2", "--out", "exp", "--quiet"},
                   folder_.path());
  ASSERT_EQ(compared.code, 0) << compared.err;
  EXPECT_THAT(plotted({"exp"}),
              ContainsRegex("\n +samples\n +\\*\\* elastic linear\n +\\+\\+ elastic root\n"
                            " +oo 128 constant \\(baseline\\)\n$"));
  EXPECT_EQ(plotted({"exp", "--out", "exp.svg"}), "");
  std::string svg = test::read_file(folder_.path() / "exp.svg");
  EXPECT_THAT(svg, HasSubstr("fill-opacity")) << "the area that the seeds reach";
  EXPECT_THAT(plotted({"exp/runs/elastic_linear_seed-1", "exp/runs/elastic_root_seed-1"}),
              HasSubstr("** elastic_linear_seed-1\n"));
}

TEST_F(PlotCommandTest, NamesRunsThatItDoesNotDraw) {
  train("runs/clocked", {"--clock", "virtual"});
  train("runs/plain");
  const test::ProgramResult result = test::rubato({"plot", "runs", "--x", "hours"}, folder_.path());
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "rubato plot: no test_accuracy, % over hours, so not drawn: plain\n");
}

// The picture is as high as the names of all curves need.
TEST_F(PlotCommandTest, CutsNoLegend) {
  for (int run = 10; run < 50; ++run) {
    folder_.write(fmt::format("runs/run-{}/metrics.jsonl", run),
                  R"({"kind":"step","step":0,"epoch":0,"batch":64,"cores":2,"loss":1})"
                  "\n");
  }
  EXPECT_EQ(plotted({"runs", "--y", "loss", "--out", "one.svg"}), "");
  EXPECT_THAT(test::read_file(folder_.path() / "one.svg"),
              ContainsRegex("height=\"8[0-9][0-9](pt)?\""));
}

TEST_F(PlotCommandTest, SaysWhatItCannotPlot) {
  train("run", {"--epochs", "1"});
  EXPECT_EQ(refused({}),
            "rubato plot: no RUN|EXPERIMENT is given; accepted: rubato plot RUN|EXPERIMENT... "
            "[OPTIONS]\n");
  EXPECT_THAT(refused({"nowhere"}), StartsWith("rubato plot: nowhere: no such folder; accepted: "));
  EXPECT_THAT(refused({"run", "--y", "los"}),
              StartsWith("rubato plot: --y: unknown column 'los'; did you mean 'loss'?"));
  EXPECT_THAT(refused({"run", "--x", "days"}), StartsWith("rubato plot: --x: unknown axis 'days'"));
  EXPECT_EQ(refused({"run", "--out", "run.gif"}),
            "rubato plot: --out: 'run.gif' is not a picture; accepted: FILE.svg or FILE.png\n");
  const test::ProgramResult lost =
      test::rubato({"plot", "run", "--out", "nowhere/run.svg"}, folder_.path());
  EXPECT_EQ(lost.code, 24);
  EXPECT_THAT(lost.err, HasSubstr("nowhere/run.svg"));
}

}  // namespace
}  // namespace rubato
