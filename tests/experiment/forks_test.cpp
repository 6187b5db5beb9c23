// Designs whose runs are forks of another run.

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/runs/run.hpp>

#include "run/runs.hpp"
#include "runs/experiment/design/design.hpp"
#include "runs/experiment/design/design_file.hpp"
#include "runs/experiment/design/experiment_plan.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

class ForkedDesign : public testing::Test {
 protected:
  // 16 steps with options that are no defaults.
  void train(const std::string& name, double rate = 0.03) const {
    const RunConfiguration run{.model = "quadratic:dim=5,samples=512",
                               .trace = "64",
                               .minibatch = 16,
                               .rule = "root",
                               .learning_rate = rate,
                               .epochs = 2,
                               .threads = 2};
    test::outcome_of(run, RunLocation::create(temp_.path() / name));
  }
  [[nodiscard]] std::string point(const std::string& name, int step) const {
    return fmt::format("{}@{}", (temp_.path() / name).string(), step);
  }
  // A design of forks of the run "run" after steps 3 and 5.
  [[nodiscard]] Design forks() const {
    Design design;
    set_values(design, "from", {point("run", 3), point("run", 5)});
    return design;
  }
  static std::string refused(Design design) {
    return error_of([&] { begin_with_runs(design); });
  }

  const test::TempFolder temp_;
};

TEST_F(ForkedDesign, BeginsWithTheOptionsOfItsRun) {
  train("run");
  Design design = forks();
  set_values(design, "epochs", {"3"});
  set_values(design, "seed", {"1", "2"});
  begin_with_runs(design);
  const ExperimentPlan plan = plan_of(design);
  std::vector<std::string> names;
  for (const PlannedRun& run : plan.runs) {
    names.push_back(run.name);
    const RunConfiguration& one = run.configuration;
    EXPECT_EQ(one.model.text(), "quadratic:dim=5,samples=512");
    EXPECT_EQ(one.minibatch, 16);
    EXPECT_EQ(one.learning_rate, 0.03);
    // Given by the design, and a default of experiments.
    EXPECT_EQ(one.epochs, 3);
    EXPECT_EQ(one.threads, 1);
  }
  EXPECT_THAT(names,
              ElementsAre("64_root_run-3_seed-1", "64_root_run-3_seed-2", "64_root_run-5_seed-1",
                          "64_root_run-5_seed-2", "run-3_baseline_seed-1", "run-3_baseline_seed-2",
                          "run-5_baseline_seed-1", "run-5_baseline_seed-2"));
  EXPECT_EQ(plan.runs.front().configuration.from.text(), point("run", 3));
  EXPECT_EQ(plan.runs.back().configuration.from.text(), point("run", 5));
}

// A value that is given counts, although it is the default of a new run.
TEST_F(ForkedDesign, PrefersWhatIsGiven) {
  train("run");
  Design design = forks();
  set_values(design, "lr", {"0.01"});
  set_values(design, "rule", {"linear"});
  begin_with_runs(design);
  EXPECT_EQ(design.base.learning_rate, 0.01);
  EXPECT_EQ(design.base.rule, "linear");
}

TEST_F(ForkedDesign, IsTheSameWhenItIsReadAgain) {
  train("run");
  Design design = forks();
  begin_with_runs(design);
  DesignFile file = parse_design(to_toml(design, temp_.path() / "experiment"), "design.toml");
  begin_with_runs(file.design);
  EXPECT_EQ(file.design, design);
}

TEST_F(ForkedDesign, RefusesWhatAForkCannotHave) {
  train("run");
  Design design = forks();
  set_values(design, "model", {"quadratic:dim=6,samples=512"});
  EXPECT_THAT(refused(design), AllOf(HasSubstr("--model was quadratic:dim=5"),
                                     HasSubstr("accepted: those of the run")));
  design = forks();
  set_values(design, "minibatch", {"16", "32"});
  EXPECT_THAT(refused(design), HasSubstr("accepted: without --minibatch"));
  design = forks();
  design.baseline = parse_baseline("minibatch=32");
  EXPECT_THAT(refused(design), HasSubstr("accepted: without --minibatch"));
  design = forks();
  design.tuning = parse_tuning("minibatch=16,32");
  EXPECT_THAT(refused(design), HasSubstr("accepted: without --minibatch"));
  design = forks();
  set_values(design, "from", {point("run", 17)});
  EXPECT_THAT(refused(design), HasSubstr("has 16 steps; accepted: 0 to 16"));
  set_values(design, "from", {point("none", 1)});
  EXPECT_THAT(refused(design), HasSubstr("no run in"));
}

TEST_F(ForkedDesign, NeedsRunsThatAreAlikeInWhatIsNotGiven) {
  train("run");
  train("other", 0.05);
  Design design;
  set_values(design, "from", {point("run", 3), point("other", 3)});
  EXPECT_THAT(refused(design), AllOf(HasSubstr("--lr is 0.03 in"), HasSubstr("and 0.05 in"),
                                     HasSubstr("accepted: --lr for all forks")));
  set_values(design, "lr", {"0.05"});
  EXPECT_EQ(refused(design), "no error");
}

TEST_F(ForkedDesign, SearchesFromTheRateOfItsRun) {
  train("run");
  Design design = forks();
  begin_with_runs(design);
  search_rate_by_default(design);
  ASSERT_TRUE(design.tuning);
  for (const TuningSubject& subject : subjects_of(design)) EXPECT_EQ(subject.usual_rate, 0.03);
}

TEST_F(ForkedDesign, OfRunsThatBeginIsLeftAsItIs) {
  Design design;
  set_values(design, "lr", {"0.05"});
  const Design before = design;
  begin_with_runs(design);
  EXPECT_EQ(design, before);
}

}  // namespace
}  // namespace rubato
