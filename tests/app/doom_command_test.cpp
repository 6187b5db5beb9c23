// `rubato doom`, as a user types it.

#include <filesystem>
#include <string>

#include <gmock/gmock.h>

#include "app/command_test.hpp"
#include "base/core/text/text.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

class DoomCommand : public test::CommandTest {
 protected:
  void train(const std::string& options) const {
    static_cast<void>(rubato("train --quiet " + options));
  }
  static constexpr const char* kQuadratic =
      "--model quadratic:dim=5,samples=512 --trace 64 --ref-batch 64 --epochs 20 ";
};

TEST_F(DoomCommand, SaysWhatItTakesAndWhatCameOfIt) {
  const std::string quadratic = kQuadratic;
  train(quadratic + "--lr 0.05 --out before");
  train("--from before@40 --lr 20 --samples 2880 --out meanwhile");
  train("--from meanwhile@45 --lr 0.05 --samples 10240 --out run");
  const std::string out = printed("doom run --orders 4");
  EXPECT_THAT(out, AllOf(HasSubstr("run ended with a loss of 224.1 after 160 steps; its loss began "
                                   "at 1.18 and was\n0.05901 at best\n"),
                         HasSubstr("a training is lost if it diverges, or ends with a loss above "
                                   "0.6195\n"),
                         ContainsRegex("at most 15 steps are tried with 4 forks each: up to 11,520 "
                                       "steps of training,\n0:0[0-9] at the speed of the run\n")));
  EXPECT_THAT(out, HasSubstr("after step    lost  share  95 % interval\n"
                             "        40  0 of 4    0 %      0 to 49 %\n"
                             "        41  0 of 4    0 %      0 to 49 %\n"
                             "        42  0 of 4    0 %      0 to 49 %\n"
                             "        43  4 of 4  100 %    51 to 100 %\n"
                             "\n"
                             "inevitable from step 43 on: after step 42, 0 of 4 orders are lost; "
                             "after step\n43, all are\n"
                             "\n"
                             "changed after step 43   saved  share  95 % interval\n"
                             "half the rate, 0.025   0 of 4    0 %      0 to 49 %\n"));
}

TEST_F(DoomCommand, SaysThatARunIsFine) {
  train(std::string(kQuadratic) + "--lr 0.05 --out run");
  EXPECT_THAT(printed("doom run"),
              AllOf(HasSubstr(": this run is\nfine\n"), Not(HasSubstr("tried"))));
}

TEST_F(DoomCommand, RefusesWhatIsNoRun) {
  EXPECT_THAT(refusal("doom none"), HasSubstr("no run in 'none'; accepted: the folder of one"));
  EXPECT_THAT(refusal("doom run --orders 0"), HasSubstr("--orders"));
  EXPECT_THAT(refusal("doom run --lost-above x"), HasSubstr("--lost-above"));
}

// The progress goes to stderr, and only to a terminal.
TEST_F(DoomCommand, PrintsNothingButJson) {
  train(std::string(kQuadratic) + "--lr 8 --out run");
  const test::ProgramResult result = rubato("doom run --orders 2 --json");
  EXPECT_EQ(nlohmann::json::parse(result.out)["inevitable_from"], 0);
  EXPECT_THAT(result.err, AllOf(HasSubstr("run diverged after"), Not(HasSubstr("fork 1"))));
}

TEST_F(DoomCommand, PrintsJsonOfARunWhoseNameIsNotUtf8) {
  train(std::string(kQuadratic) + "--lr 0.05 --out run");
  std::filesystem::rename(file("run"), file("r\xffn"));
  EXPECT_EQ(nlohmann::json::parse(succeeds("doom r\xffn --json"))["run"], "r\uFFFDn");
}

}  // namespace
}  // namespace rubato
