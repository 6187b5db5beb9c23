// `rubato whatif` as users type it.

#include <filesystem>
#include <string>

#include <gmock/gmock.h>

#include "app/command_test.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

class WhatIfCommand : public test::CommandTest {
 protected:
  // A run of 47 steps; cores die, are taken, and are given back.
  void train() const {
    std::string trace = "step,batchsize,cores\n";
    for (int step = 0; step < 60; ++step) {
      const bool few = step >= 12 && step < 20;
      trace += std::to_string(step) + (few ? ",128,4\n" : ",256,8\n");
    }
    folder_.write("t.csv", trace);
    succeeds(
        "train --model softmax --epochs 1 --trace t.csv --fault core=1,step=3 --out run --quiet");
  }
};

TEST_F(WhatIfCommand, ListsTheEventsWithoutTraining) {
  train();
  EXPECT_EQ(succeeds("whatif run --list"),
            "event  step  what happened\n"
            "    1     3  core 1 died\n"
            "    2    13  cores 8 to 4, batch 256 to 128\n"
            "    3    21  cores 4 to 8, batch 128 to 256\n");
  EXPECT_FALSE(std::filesystem::exists(file("run/whatif")));
}

TEST_F(WhatIfCommand, SaysWhatItWillTakeAndThenWhatWouldHaveBeen) {
  train();
  const std::string printed = succeeds("whatif run");
  EXPECT_THAT(
      printed,
      AllOf(ContainsRegex(
                "^4 counterfactuals, 1 with the bits of the run, which is not trained\n"
                "2 forks to train, [0-9]+ steps, and 20 of the run to repeat: about [0-9]+ s\n"),
            HasSubstr("    2    13  cores 8 to 4, batch 256 to 128\n"),
            ContainsRegex("\nleft out +step +lost work +substeps +to target +loss +accuracy\n"
                          "nothing +51 +[0-9]+ +[0-9.]+ +[0-9.]+ %\n"
                          "event 1 +3 +8 minibatches +51 "),
            ContainsRegex("\nevent 2 +13 +47 "),
            ContainsRegex("\nall changes +13 +8 minibatches +47 "),
            ContainsRegex("\naccuracy, points: [-+0-9.]+ one by one, [-+0-9.]+ together\n")));
  EXPECT_THAT(printed, HasSubstr("--seeds N says"));
  // The numbers of the run are those of its summary.
  EXPECT_EQ(json_in("run/whatif/whatif.json")["run"]["samples"], summary("run")["samples"]);
  const std::string again = succeeds("whatif run");
  EXPECT_THAT(again, AllOf(HasSubstr(", 2 forks trained before\n"), Not(HasSubstr("to train"))));
  EXPECT_EQ(again.substr(again.find("left out")), printed.substr(printed.find("left out")));
}

TEST_F(WhatIfCommand, VariesTheOrderOfTheSamples) {
  train();
  EXPECT_THAT(succeeds("whatif run --without preemptions --seeds 2"),
              ContainsRegex("in 3 orders of the samples, mean and standard deviation:\n.*\n"
                            "preemptions +[-+0-9.]+ ± [0-9.]+ "));
}

TEST_F(WhatIfCommand, HasOtherOptionsOfTheRun) {
  train();
  EXPECT_THAT(succeeds("whatif run --without 2 --rule root --lr 0.02"),
              ContainsRegex("\nevent 2 .*\nwith rule root, lr 0.02 +13 "));
  EXPECT_THAT(refusal("whatif run --lr 0"), HasSubstr("--lr: "));
  EXPECT_THAT(refusal("whatif run --model mlp"), HasSubstr("unknown option '--model'"));
  EXPECT_THAT(refusal("whatif run --no-decay x"), HasSubstr("unknown option '--no-decay'"));
}

TEST_F(WhatIfCommand, CountsSamplesUntilATarget) {
  train();
  const std::string printed = succeeds("whatif run --target-accuracy 99.5 --without 2");
  EXPECT_THAT(printed, AllOf(HasSubstr("samples until an accuracy of 99.50 %"),
                             ContainsRegex("\nnothing +51 +never ")));
  EXPECT_THAT(refusal("whatif run --target-accuracy 99 --target-loss 1"),
              HasSubstr("accepted: one of them"));
}

TEST_F(WhatIfCommand, RefusesWhatItCannotDo) {
  train();
  EXPECT_THAT(refusal("whatif nothing"), HasSubstr("no run in 'nothing'"));
  EXPECT_THAT(refusal("whatif run --without 4"), HasSubstr("--without 4: '4' is out of range"));
  EXPECT_THAT(refusal("whatif run --without 1,preemption"),
              HasSubstr("preemptions or all-changes"));
  EXPECT_THAT(refusal("whatif run --list --json"),
              HasSubstr("--json: --list prints a table; accepted: one of them"));
  EXPECT_THAT(refusal("whatif run --json --quiet"),
              HasSubstr("--json: --quiet prints nothing; accepted: one of them"));
  EXPECT_THAT(refusal("whatif run --list --quiet"),
              HasSubstr("--list: --quiet prints nothing; accepted: one of them"));
  EXPECT_EQ(succeeds("whatif run --quiet"), "");
}

}  // namespace
}  // namespace rubato
