// Runs whose first steps are those of another run.

#include "runs/experiment/conduct/shared_prefix.hpp"

#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "runs/experiment/design/design.hpp"
#include "runs/experiment/design/experiment_plan.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

class SharedPrefixes : public testing::Test {
 protected:
  // A trace of so many steps of 128 samples, and others of 256 behind them.
  [[nodiscard]] std::string trace(int first) const {
    std::string text = "step,batchsize\n";
    for (int step = 0; step < 100; ++step) {
      text += fmt::format("{},{}\n", step, step < first ? 128 : 256);
    }
    return folder_.write(fmt::format("{}.csv", first), text).string();
  }
  // 2 epochs of at most 20 steps.
  [[nodiscard]] Design design(int first) const {
    Design design;
    design.base.model = "quadratic:dim=5,samples=2560";
    design.base.epochs = 2;
    set_values(design, "trace", {trace(first)});
    set_values(design, "rule", {"linear", "root", "constant"});
    return design;
  }
  // Which run shares how many steps with which other.
  static std::vector<std::string> shared(const Design& design) {
    const ExperimentPlan plan = plan_of(design);
    DataFacts facts;
    const auto prefixes = shared_prefixes(plan.runs, facts);
    EXPECT_EQ(prefixes.size(), plan.runs.size());
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < prefixes.size(); ++i) {
      if (!prefixes[i]) continue;
      texts.push_back(fmt::format("{} of {}: {}", plan.runs[i].name,
                                  plan.runs[prefixes[i]->trained_by].name, prefixes[i]->steps));
    }
    return texts;
  }

  const test::TempFolder folder_;
};

TEST_F(SharedPrefixes, AreThoseOfRunsThatDifferInTheirRulesAlone) {
  Design two = design(7);
  set_values(two, "seed", {"1", "2"});
  EXPECT_THAT(shared(two), ElementsAre("7_root_seed-1 of 7_linear_seed-1: 7",
                                       "7_root_seed-2 of 7_linear_seed-2: 7",
                                       "7_constant_seed-1 of 7_linear_seed-1: 7",
                                       "7_constant_seed-2 of 7_linear_seed-2: 7"));
}

TEST_F(SharedPrefixes, AreAtLeastATenthOfTheRun) {
  EXPECT_THAT(shared(design(20)), SizeIs(2));
  // Both have 11 + 10 steps.
  EXPECT_THAT(shared(design(2)), IsEmpty());
  EXPECT_THAT(shared(design(3)), SizeIs(2));
  EXPECT_THAT(shared(design(0)), IsEmpty());
  // All steps have the reference batch.
  EXPECT_THAT(shared(design(100)), IsEmpty());
}

// Rules with a state, with norms, or with a momentum of their own.
TEST_F(SharedPrefixes, AreOfPlainRulesOnly) {
  Design others = design(7);
  set_values(others, "rule", {"linear", "linear:ramp=3", "linear-momentum", "adascale", "lbsgd"});
  EXPECT_THAT(shared(others), IsEmpty());
}

TEST_F(SharedPrefixes, NeedStepsThatAreKnownInAdvance) {
  const std::vector<std::function<void(Design&)>> cases{
      [](Design& each) { set_values(each, "ref-batch", {"64"}); },
      [](Design& each) { set_values(each, "checkpoint-every", {"5steps"}); },
      [](Design& each) { set_values(each, "samples", {"2000"}); },
      [](Design& each) { set_values(each, "patience", {"1"}); },
      [](Design& each) { set_values(each, "tensorboard", {"true"}); },
      [](Design& each) { set_values(each, "batch", {"noise-scale:max=256"}); },
      [](Design& each) { set_values(each, "trace", {"spot:most=8,seed=3"}); },
      [](Design& each) { each.base.from = "run@3"; }};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Design each = design(7);
    cases[i](each);
    EXPECT_THAT(shared(each), IsEmpty()) << i;
  }
}

}  // namespace
}  // namespace rubato
