// `rubato plot`: curves of runs, as the scripts for gnuplot that it writes, and as gnuplot draws
// them.

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "app/command_test.hpp"
#include "app/on_terminal.hpp"
#include "support/matchers.hpp"
#include "support/sanitizers.hpp"

namespace rubato {
namespace {

using test::Words;

class PlotCommandTest : public test::CommandTest {
 protected:
  void train(const std::string& out, const Words& more = {}) const {
    succeeds("train --model softmax --epochs 3 --quiet --out " + out + more);
  }
  // The script for gnuplot, which is not started.
  [[nodiscard]] std::string plotted(const Words& arguments) const {
    EXPECT_EQ(printed("plot --gnuplot plot.gp" + arguments), "");
    return content("plot.gp");
  }
  [[nodiscard]] std::string refused(const Words& arguments) const {
    return refusal("plot" + arguments);
  }
};

TEST_F(PlotCommandTest, DrawsTheAccuracyOfARun) {
  train("runs/first");
  const std::string script = plotted("runs/first");
  EXPECT_THAT(script, HasSubstr("\nset title 'test_accuracy, %' noenhanced\nunset key\n"));
  EXPECT_THAT(script, HasSubstr("\nset xlabel 'samples'\n"));
  EXPECT_THAT(script, ContainsRegex("\n11[0-9]+ [0-9.]+ [0-9.]+ [0-9.]+ NaN\n23[0-9]+ "));
}

TEST_F(PlotCommandTest, DrawsRunsOverOneAnother) {
  train("runs/linear");
  train("runs/root", "--rule root");
  const std::string script = plotted("runs --y loss --x steps");
  EXPECT_THAT(script, HasSubstr("\nset title 'loss' noenhanced\n"));
  EXPECT_THAT(script, HasSubstr(" title ' linear', "));
  EXPECT_THAT(script, HasSubstr(" title ' root', "));
  EXPECT_THAT(script, HasSubstr("\nset xlabel 'steps'\n"));
  EXPECT_EQ(plotted("runs/linear runs/root/ --y loss --x steps"), script);
}

TEST_F(PlotCommandTest, DrawsTheLossWhereThereIsNoAccuracy) {
  train("run", "--model quadratic:dim=10");
  EXPECT_THAT(plotted("run"), HasSubstr("\nset title 'loss' noenhanced\n"));
  EXPECT_THAT(refused("run --y accuracy"),
              StartsWith("rubato plot: no run has test_accuracy over samples; accepted: "));
}

TEST_F(PlotCommandTest, IsDrawnByGnuplot) {
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no gnuplot";
  train("runs/linear");
  train("runs/root", "--rule root");
  const auto drawn = [&](const Words& arguments) {
    return printed("plot runs --y loss" + arguments);
  };
  const std::string text = drawn({});
  EXPECT_THAT(text, ContainsRegex("^ +loss\n"));
  EXPECT_THAT(text, AllOf(HasSubstr("*****"), HasSubstr("#########")));
  EXPECT_THAT(text, ContainsRegex("\n +0 +5000 .*\n +samples\n *\\*+ *linear\n *#+ *root\n$"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(test::on_terminal(60, "plot runs", folder_.path()), HasSubstr("\x1b["));
  EXPECT_THAT(test::on_terminal(60, "plot runs", folder_.path(), {{"NO_COLOR", "1"}}),
              Not(HasSubstr("\x1b")));
  EXPECT_EQ(drawn("--out loss.svg --gnuplot loss.gp"), "");
  const std::string svg = content("loss.svg");
  EXPECT_THAT(svg, StartsWith("<?xml"));
  EXPECT_THAT(svg, HasSubstr("<title>linear</title>"));
  EXPECT_THAT(svg, HasSubstr("</svg>"));
  EXPECT_EQ(test::shell("gnuplot loss.gp", folder_.path()).out, svg);
  EXPECT_EQ(test::shell("LC_ALL=C exec \"$0\" plot runs", folder_.path()).err, "");
  EXPECT_EQ(drawn("--out loss.png"), "");
  EXPECT_THAT(content("loss.png"), StartsWith("\x89PNG\r\n\x1a\n"));
  EXPECT_EQ(drawn("--out loss.pdf"), "");
  EXPECT_THAT(content("loss.pdf"), StartsWith("%PDF"));
}

TEST_F(PlotCommandTest, SaysThatThereIsNoGnuplot) {
  train("run", "--epochs 1");
  const test::ProgramResult result =
      test::shell("PATH=/nowhere; exec \"$0\" plot run --out run.svg", folder_.path());
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.err,
            "rubato plot: gnuplot is not installed; plots need it: apt-get install gnuplot-nox "
            "(Debian's package)\n");
}

// Each choice is one curve, the mean of its seeds.
TEST_F(PlotCommandTest, DrawsTheChoicesOfAnExperiment) {
  succeeds(
      "compare --model softmax --rule linear,root --seed 1..3 --epochs 2 --tune never --out exp "
      "--quiet");
  const std::string script = plotted("exp");
  EXPECT_THAT(script,
              ContainsRegex("title ' elastic linear', .*\n.*\n.* title ' elastic root', .*\n.*"
                            "\n.* title ' 128 constant \\(baseline\\)', "));
  EXPECT_THAT(plotted("exp/runs/elastic_linear_seed-1 exp/runs/elastic_root_seed-1"),
              HasSubstr(" title ' elastic_linear_seed-1'"));
}

// A list that is closed has the scores of its values, and --rates those of all choices.
TEST_F(PlotCommandTest, DrawsScoresOverTheLearningRate) {
  const std::string design =
      "compare --model softmax --rule linear --epochs 1 --seed 1,2 --tune-seeds 1 --quiet --tune ";
  succeeds(design + "lr=0.01,0.1,only --out tuned");
  EXPECT_THAT(plotted("tuned --x rate"),
              AllOf(HasSubstr("\nset logscale x\nset xlabel 'learning rate'\n"),
                    ContainsRegex("\n0.01 [0-9.]+ .*\n0.1 [0-9.]+ .*\nEND\n")));
  succeeds(design + "lr=0.01,0.1,only --rates 2 --out rates");
  EXPECT_THAT(plotted("rates --x rate"),
              AllOf(ContainsRegex("title ' elastic linear'"),
                    ContainsRegex("title ' 128 constant \\(baseline\\)'")));
  // The last loss is 6,000 times the least one.
  succeeds(
      "compare --model quadratic:dim=5 --rule linear --epochs 1 --seed 1 --tune-seeds 1 --quiet "
      "--tune lr=0.01,0.1,2.5,3,only --out losses");
  EXPECT_THAT(plotted("losses --x rate"),
              AllOf(HasSubstr("\nset logscale y\nset title 'test_loss' noenhanced\n"),
                    ContainsRegex("\n0.01 [0-9.]+ .*\n0.1 [0-9.]+ .*\n2.5 [0-9.]+ .*\n3 NaN ")));
  succeeds("compare --model softmax --rule linear --epochs 1 --lr 0.1 --quiet --out one");
  EXPECT_THAT(refusal("plot one --x rate"), HasSubstr("--x rate: nothing was tried at several"));
}

// The trace is the same for all of them.
TEST_F(PlotCommandTest, NamesChoicesByWhatDiffers) {
  folder_.write("exp/design.toml",
                "model = \"softmax\"\ntrace = \"128\"\n[axes]\nrule = [\"linear\", \"root\"]\n"
                "seed = \"1..2\"\n");
  for (const char* const run : {"128_linear_seed-1", "128_root_seed-1"}) {
    folder_.write(fmt::format("exp/runs/{}/metrics.jsonl", run),
                  R"({"kind":"step","step":0,"epoch":0,"batch":64,"cores":2,"loss":1})"
                  "\n");
  }
  EXPECT_THAT(plotted("exp --y loss"),
              ContainsRegex("title ' linear', .*\n.*\n.* title ' root', "));
}

TEST_F(PlotCommandTest, NamesRunsThatItDoesNotDraw) {
  train("runs/clocked", "--clock virtual");
  train("runs/plain");
  const test::ProgramResult result = rubato("plot runs --x hours");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "rubato plot: no test_accuracy, % over hours, so not drawn: plain\n");
}

TEST_F(PlotCommandTest, SaysWhatItCannotPlot) {
  train("run", "--epochs 1");
  EXPECT_EQ(refused({}),
            "rubato plot: no RUN|EXPERIMENT is given; accepted: rubato plot RUN|EXPERIMENT... "
            "[OPTIONS]\n");
  EXPECT_THAT(refused("nowhere"), StartsWith("rubato plot: nowhere: no such folder; accepted: "));
  EXPECT_THAT(refused("run --y los"),
              StartsWith("rubato plot: --y: unknown column 'los'; did you mean 'loss'?"));
  EXPECT_THAT(refused("run --x days"), StartsWith("rubato plot: --x: unknown axis 'days'"));
  EXPECT_EQ(refused("run --out run.gif"),
            "rubato plot: --out: 'run.gif' is not a picture; accepted: FILE.svg, FILE.png or "
            "FILE.pdf\n");
  const test::ProgramResult lost = rubato("plot run --gnuplot nowhere/run.gp");
  EXPECT_EQ(lost.code, 24);
  EXPECT_THAT(lost.err, HasSubstr("nowhere/run.gp"));
}

// Two temporary files are one more than the limit of open files leaves room for.
TEST_F(PlotCommandTest, SaysThatNoTemporaryFileCanBeMade) {
  if (test::kSanitized) {
    GTEST_SKIP() << "the sanitizers open files, too";
  }
  train("run");
  const test::ProgramResult result = test::shell(
      "for open in 3 4 5 6 7 8 9; do eval \"exec $open>&-\"; done; ulimit -n 4; "
      "exec \"$0\" plot run --out run.svg",
      folder_.path());
  EXPECT_EQ(result.code, 24);
  EXPECT_EQ(result.err, "rubato plot: no file can be made in /tmp\n");
}

TEST_F(PlotCommandTest, DrawsTheMeanOfTheSeedsBetweenTheLeastAndTheMost) {
  folder_.write(
      "exp/design.toml",
      "model = \"softmax\"\ntrace = \"128\"\n[axes]\nrule = [\"linear\"]\nseed = \"1..2\"\n");
  for (const auto& [run, loss] :
       {std::pair{"128_linear_seed-1", 1}, std::pair{"128_linear_seed-2", 3}}) {
    folder_.write(
        fmt::format("exp/runs/{}/metrics.jsonl", run),
        fmt::format(R"({{"kind":"step","step":0,"epoch":0,"batch":64,"cores":2,"loss":{}}})"
                    "\n",
                    loss));
  }
  EXPECT_THAT(plotted("exp --y loss"), HasSubstr("\n64 2 1 3 2\n"));
}

}  // namespace
}  // namespace rubato
