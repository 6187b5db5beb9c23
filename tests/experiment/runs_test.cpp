#include <algorithm>
#include <set>

#include <gmock/gmock.h>

#include <rubato/base/error.hpp>

#include "runs/experiment/design/experiment_plan.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

Design two_by_two() {
  Design design;
  design.base.model = "softmax";
  set_values(design, "trace", {"elastic", "256"});
  set_values(design, "rule", {"linear", "root"});
  set_values(design, "seed", {"1", "2"});
  return design;
}

std::vector<std::string> names_of(const ExperimentPlan& plan, const PlannedCell& cell) {
  std::vector<std::string> names;
  for (const std::size_t run : cell.runs) names.push_back(plan.runs[run].name);
  return names;
}

TEST(Runs, AreTheProductAndABaseline) {
  const ExperimentPlan plan = plan_of(two_by_two());
  EXPECT_THAT(plan.columns, ElementsAre("trace", "rule"));
  EXPECT_THAT(plan.conditions, ElementsAre("trace elastic", "trace 256", "trace 128"));
  ASSERT_EQ(plan.cells.size(), 5U);
  ASSERT_EQ(plan.runs.size(), 10U);
  EXPECT_THAT(plan.cells[1].labels, ElementsAre("elastic", "root"));
  EXPECT_THAT(names_of(plan, plan.cells[1]),
              ElementsAre("elastic_root_seed-1", "elastic_root_seed-2"));
  const PlannedCell& baseline = plan.cells.back();
  EXPECT_TRUE(baseline.is_baseline);
  EXPECT_THAT(baseline.labels, ElementsAre("128", "constant"));
  EXPECT_THAT(names_of(plan, baseline), ElementsAre("baseline_seed-1", "baseline_seed-2"));
  const RunConfiguration& run = plan.runs[baseline.runs[1]].configuration;
  EXPECT_EQ(run.trace, "128");
  EXPECT_EQ(run.rule, "constant");
  EXPECT_EQ(run.seed, 2U);
  EXPECT_EQ(run.model, "softmax");
}

TEST(Runs, ThatAreTheBaselineAreNotThereTwice) {
  Design design = two_by_two();
  set_values(design, "trace", {"128", "256"});
  set_values(design, "rule", {"constant", "linear"});
  const ExperimentPlan plan = plan_of(design);
  EXPECT_EQ(plan.runs.size(), 8U);
  EXPECT_EQ(std::ranges::count_if(plan.cells, &PlannedCell::is_baseline), 1);
  EXPECT_TRUE(plan.cells.front().is_baseline);
  EXPECT_THAT(plan.cells.front().labels, ElementsAre("128", "constant"));
}

TEST(Runs, HaveABaselineForEachSetting) {
  Design design = two_by_two();
  set_values(design, "ref-batch", {"64", "128"});
  set_values(design, "optimizer", {"sgd", "adam"});
  const ExperimentPlan plan = plan_of(design);
  EXPECT_EQ(plan.settings.size(), 4U);
  std::set<std::string> baselines;
  for (const PlannedCell& cell : plan.cells) {
    const RunConfiguration& run = plan.runs[cell.runs.front()].configuration;
    if (!cell.is_baseline) continue;
    // Each of its own reference batch.
    EXPECT_EQ(run.trace, std::to_string(run.reference_batch));
    baselines.insert(plan.runs[cell.runs.front()].name);
    for (const PlannedCell& other : plan.cells) {
      if (other.setting != cell.setting) continue;
      const RunConfiguration& same = plan.runs[other.runs.front()].configuration;
      EXPECT_EQ(same.optimizer, run.optimizer);
      EXPECT_EQ(same.reference_batch, run.reference_batch);
    }
  }
  EXPECT_THAT(baselines,
              ElementsAre("ref-batch-128_adam_baseline_seed-1", "ref-batch-128_sgd_baseline_seed-1",
                          "ref-batch-64_adam_baseline_seed-1", "ref-batch-64_sgd_baseline_seed-1"));
}

TEST(Runs, KeepTheirNamesInALargerDesign) {
  Design design = two_by_two();
  const ExperimentPlan before = plan_of(design);
  set_values(design, "trace", {"64", "256", "elastic"});
  set_values(design, "rule", {"root", "constant", "linear"});
  set_values(design, "seed", {"5", "2", "1"});
  const ExperimentPlan after = plan_of(design);
  for (const PlannedRun& run : before.runs) {
    const auto found = std::ranges::find(after.runs, run.name, &PlannedRun::name);
    ASSERT_NE(found, after.runs.end()) << run.name;
    EXPECT_EQ(found->configuration, run.configuration) << run.name;
  }
}

TEST(Runs, HaveTheBudgetAndWhatWasTuned) {
  Design design = two_by_two();
  design.budget = parse_budget("iterations=50");
  design.tuning = parse_tuning("lr=0.1,0.2");
  set_values(design, "optimizer", {"sgd", "adam"});
  const ExperimentPlan plan = plan_of(design, {"0.1", "0.2"});
  for (const PlannedRun& run : plan.runs) {
    EXPECT_EQ(run.configuration.iterations, 50) << run.name;
    EXPECT_EQ(run.configuration.learning_rate, run.configuration.optimizer == "sgd" ? 0.1 : 0.2)
        << run.name;
  }
}

TEST(Runs, TakeWhatTheBaselineSays) {
  Design design = two_by_two();
  design.baseline = parse_baseline("trace=512,cores=2");
  const ExperimentPlan plan = plan_of(design);
  const RunConfiguration& run = plan.runs.back().configuration;
  EXPECT_EQ(run.trace, "512");
  EXPECT_EQ(run.cores, 2);
  EXPECT_EQ(run.rule, "constant");
}

TEST(Runs, OfTheBaselineHaveNoDevices) {
  Design design = two_by_two();
  set_values(design, "trace", {"spot:most=8,seed=1"});
  set_values(design, "availability", {"strong:batch=256"});
  const ExperimentPlan plan = plan_of(design);
  EXPECT_EQ(plan.runs.front().configuration.availability, "strong:batch=256");
  EXPECT_EQ(plan.runs.back().configuration.availability, "");
}

TEST(Runs, OfTheBaselineAreOfNoMarket) {
  Design design = two_by_two();
  set_values(design, "trace", {"spot:most=8,seed=1"});
  set_values(design, "clock", {"virtual"});
  set_values(design, "cluster", {"substep=20,join=30,update=1,on-demand=8,on-demand-price=3"});
  set_values(design, "price", {"trace"});
  set_values(design, "market", {"uniform"});
  set_values(design, "deadline", {"8"});
  const ExperimentPlan plan = plan_of(design);
  const RunConfiguration& run = plan.runs.back().configuration;
  EXPECT_EQ(run.cluster, "substep=20,update=1");
  EXPECT_EQ(run.market, "");
  EXPECT_FALSE(run.deadline);
  EXPECT_FALSE(run.price->costs());
}

// The market makes no difference to a baseline on constant resources.
TEST(Runs, ThatAreEqualHaveOneName) {
  Design design = two_by_two();
  set_values(design, "trace", {"spot:most=8,seed=1"});
  set_values(design, "rule", {"linear"});
  set_values(design, "clock", {"virtual"});
  set_values(design, "cluster", {"substep=20,join=30,update=1,on-demand=8,on-demand-price=3"});
  set_values(design, "market", {"uniform", "greedy"});
  set_values(design, "deadline", {"8"});
  design.rates = 2;
  const ExperimentPlan plan = plan_of(design);
  ASSERT_EQ(plan.cells.size(), 4U);
  std::vector<std::vector<std::string>> baselines;
  for (const PlannedCell& cell : plan.cells) {
    if (cell.is_baseline) baselines.push_back(names_of(plan, cell));
  }
  ASSERT_EQ(baselines.size(), 2U);
  EXPECT_EQ(baselines[0], baselines[1]);
  const std::vector<std::string> names = names_of_runs(design);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(plan.runs.size(), 24U) << "four cells at three rates with two seeds";
  EXPECT_EQ(names.size(), 18U);
  design.tuning = parse_tuning("lr=0.1,0.2");
  const std::vector<TuningCell> cells = tuning_of(design);
  ASSERT_EQ(cells.size(), 4U);
  EXPECT_EQ(cells[0].runs[1].name, cells[2].runs[1].name);
  EXPECT_NE(cells[0].runs[1].name, cells[3].runs[1].name);
}

TEST(Runs, AreCheckedBeforeTheyRun) {
  Design design = two_by_two();
  design.base.momentum = 0;
  set_values(design, "nesterov", {"false", "true"});
  EXPECT_THAT(error_of([&] { return plan_of(design); }),
              AllOf(HasSubstr("--nesterov: there is no momentum"),
                    HasSubstr("(of the run elastic_linear_nesterov-true_seed-1)")));
}

TEST(Runs, OfTuningAreTheBaselineWithEachValue) {
  Design design = two_by_two();
  design.tuning = parse_tuning("lr=0.1,0.2,0.4");
  set_values(design, "seed", {"3", "4", "5"});
  const std::vector<TuningCell> cells = tuning_of(design);
  ASSERT_EQ(cells.size(), 3U);
  EXPECT_EQ(cells[1].value, "0.2");
  ASSERT_EQ(cells[1].runs.size(), 2U);
  EXPECT_EQ(cells[1].runs[1].name, "lr-0.2_seed-1000002");
  EXPECT_EQ(cells[1].runs[1].seed, 1'000'002U);
  EXPECT_EQ(cells[1].runs[1].configuration.trace, "128");
  EXPECT_EQ(cells[1].runs[1].configuration.learning_rate, 0.2);
  // Luck in tuning must not come back in the comparison.
  set_values(design, "seed", {"3", "1000001"});
  EXPECT_THAT(tuning_seeds_of(design), ElementsAre("1000002", "1000003"));
}

TEST(Runs, OfTuningAreEachCombinationIfItIsForEach) {
  Design design = two_by_two();
  design.tuning = parse_tuning("lr=0.1,0.2");
  design.tune_for = TuneFor::each;
  std::vector<std::string> words;
  for (const TuningSubject& subject : subjects_of(design)) words.push_back(subject.words);
  EXPECT_THAT(words, ElementsAre("trace elastic, rule linear", "trace elastic, rule root",
                                 "trace 256, rule linear", "trace 256, rule root",
                                 "trace 128, rule constant"));
  const std::vector<TuningCell> cells = tuning_of(design);
  ASSERT_EQ(cells.size(), 10U);
  EXPECT_EQ(cells[3].subject, 1U);
  EXPECT_EQ(cells[3].runs[0].name, "elastic_root_lr-0.2_seed-1000001");
  EXPECT_EQ(cells[3].runs[0].configuration.rule, "root");
  EXPECT_EQ(cells[9].runs[0].name, "baseline_lr-0.2_seed-1000001");
  // Their own values, but the same cells.
  const ExperimentPlan plan = plan_of(design, {"0.1", "0.2", "0.3", "0.4", "0.5"});
  const auto rate_of = [&](std::size_t cell) {
    return plan.runs[plan.cells[cell].runs.front()].configuration.learning_rate;
  };
  EXPECT_THAT((std::vector{rate_of(0), rate_of(1), rate_of(2), rate_of(3), rate_of(4)}),
              ElementsAre(0.1, 0.2, 0.3, 0.4, 0.5));
  EXPECT_TRUE(plan.cells[4].is_baseline);
  set_values(design, "rule", {"own:name=mine"});
  EXPECT_THAT(error_of([&] { return tuning_of(design); }),
              HasSubstr("the rule mine is a function in Python"));
}

TEST(Runs, AreRepeatedAtOtherRates) {
  Design design = two_by_two();
  design.rates = 4;
  const ExperimentPlan plan = plan_of(design, {});
  ASSERT_EQ(plan.cells.size(), 5U);
  EXPECT_EQ(plan.runs.size(), 5U * 2U * 5U) << "the runs of the cells are the first";
  EXPECT_EQ(plan.runs[9].name, "baseline_seed-2");
  ASSERT_EQ(plan.rates.size(), 5U * 4U);
  std::vector<double> factors;
  for (std::size_t i = 0; i < 4; ++i) factors.push_back(plan.rates[i].factor);
  EXPECT_THAT(factors, ElementsAre(0.25, 0.5, 2, 4));
  const PlannedRun& run = plan.runs[plan.rates[4].runs[1]];
  EXPECT_EQ(run.name, "elastic_root_lr-x0.25_seed-2");
  EXPECT_EQ(run.configuration.learning_rate, 0.0025);
  EXPECT_EQ(run.configuration.rule, "root");
  // At the rate that was tuned.
  design.tuning = parse_tuning("lr");
  const ExperimentPlan tuned = plan_of(design, {"0.056"});
  EXPECT_EQ(tuned.runs[tuned.rates[3].runs[0]].configuration.learning_rate, 0.224);
  set_values(design, "rule", {"own:name=mine"});
  EXPECT_THAT(error_of([&] { return plan_of(design); }), HasSubstr("--rates: the rule mine is a"));
}

TEST(Runs, OfASearchBeginAtTheUsualRateOfEachOptimizer) {
  Design design = two_by_two();
  design.tuning = parse_tuning("lr");
  design.tuning_seeds = 1;
  set_values(design, "optimizer", {"sgd", "adamw"});
  std::vector<double> rates;
  for (const TuningSubject& subject : subjects_of(design)) rates.push_back(subject.usual_rate);
  EXPECT_THAT(rates, ElementsAre(0.1, 0.001));
  std::vector<std::string> names;
  for (const TuningCell& cell : tuning_of(design)) names.push_back(cell.runs.at(0).name);
  EXPECT_THAT(names, ElementsAre("sgd_lr-0.032_seed-1000001", "sgd_lr-0.1_seed-1000001",
                                 "sgd_lr-0.32_seed-1000001", "adamw_lr-0.00032_seed-1000001",
                                 "adamw_lr-0.001_seed-1000001", "adamw_lr-0.0032_seed-1000001"));
  // The rounds of the settings are of different lengths.
  const std::vector<TuningCell> next = tuning_of(design, {{}, {"0.01"}});
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].subject, 1U);
  EXPECT_EQ(next[0].runs[0].configuration.learning_rate, 0.01);
}

}  // namespace
}  // namespace rubato
