#include "runs/experiment/conduct/conduct.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/core/file.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

class StageNotes final : public ExperimentView {
 public:
  void on_stage(const std::string& name, std::int64_t /*runs*/,
                const std::vector<RunResult>& /*ended*/) override {
    stages.push_back(name);
  }
  void on_search(const SearchCost& cost) override { searches.push_back(cost.least_runs()); }
  void on_start(const std::string& run) override { started.push_back(run); }
  void on_end(const std::string& run, const RunResult& /*result*/, double /*seconds*/) override {
    ended.push_back(run);
  }
  void on_damaged(const std::string& run, const std::string& what, const fs::path& aside) override {
    damaged.push_back(fmt::format("{}: {}: {}", run, what, aside.string()));
  }
  void on_missing(const std::string& run, const std::string& /*why*/) override {
    missing.push_back(run);
  }
  void on_tick() override {}
  void on_stage_end() override {}

  std::vector<std::string> stages;
  std::vector<std::int64_t> searches;
  std::vector<std::string> started;
  std::vector<std::string> ended;
  std::vector<std::string> damaged;
  std::vector<std::string> missing;
};

// Runs that a script pretends to do: it gets the run's folder in $out, and finish makes it one of a
// run that has ended.
class Conducting : public testing::Test {
 protected:
  void SetUp() override {
    design_.base.model = "quadratic";
    set_values(design_, "rule", {"linear", "constant"});
    set_values(design_, "trace", {"64"});
  }
  Conducted conduct(const std::string& script, const Work& work = {}) {
    const fs::path program = folder_.write(
        "program",
        "#!/bin/bash\n"
        "case $2 in --resume) out=$3;; *) out=$5;; esac\n"
        "finish() {\n"
        "  local loss=${1:-0.5} end=\n"
        "  [[ ! ${2:-} ]] || end='\"end\":\"'$2'\",'\n"
        "  mkdir -p $out\n"
        "  echo '{\"kind\":\"epoch\",\"steps\":9,\"samples\":99,\"test_loss\":'$loss'}' "
        ">$out/metrics.jsonl\n"
        "  digest=$(sha256sum $out/metrics.jsonl)\n"
        "  echo '{\"epochs\":1,\"steps\":9,\"samples\":99,\"iterations\":9,\"wall_seconds\":1,"
        "'$end'\"stopped\":null,\"final_test_loss\":'$loss',"
        "\"metrics_sha256\":\"'${digest%% *}'\"}' "
        ">$out/summary.json\n"
        "}\n" +
            script);
    fs::permissions(program, fs::perms::owner_all);
    const ExperimentFolder folder(path_);
    const Design design = folder.adopt(design_);
    folder.write_design(design);
    DataFacts facts;
    notes_.emplace();
    return rubato::conduct(design, folder, facts, {.program = program, .stopping = {}}, *notes_,
                           work);
  }

  const test::TempFolder folder_;
  const fs::path path_ = folder_.path() / "experiment";
  Design design_;
  std::optional<StageNotes> notes_;
};

// What it would have been is not known: the runs must not have a rate that was chosen without it.
TEST_F(Conducting, TunesNothingByRunsOneOfWhichWasKilled) {
  design_.tuning = parse_tuning("lr=0.01,0.02");
  design_.tuning_seeds = 1;
  const Conducted killed = conduct("case $out in */tune/*0.02*) kill -KILL $$;; esac; finish");
  EXPECT_EQ(killed.missing, 1);
  EXPECT_FALSE(killed.answer.has_value());
  EXPECT_THAT(notes_->stages, ElementsAre("tuning lr"));
  const Conducted whole = conduct("finish");
  EXPECT_EQ(whole.missing, 0);
  EXPECT_TRUE(whole.answer.has_value());
  EXPECT_THAT(notes_->stages, ElementsAre("tuning lr", "runs"));
}

// Another value may be the best, with which the runs that exist were not trained.
TEST_F(Conducting, RefusesFurtherTuningOfRunsThatExistBeforeItTrains) {
  set_values(design_, "momentum", {"0", "0.5"});
  design_.tuning = parse_tuning("lr=0.01,0.02,only");
  ASSERT_TRUE(conduct("finish").answer.has_value());
  const auto refusal = [&] {
    const ExperimentFolder folder(path_);
    DataFacts facts;
    return error_of([&] { require_same_runs(folder.adopt(design_), folder, facts); });
  };
  EXPECT_EQ(refusal(), "no error");
  set_values(design_, "momentum", {"0", "0.5", "0.9"});
  EXPECT_EQ(refusal(), "no error") << "the runs that it is tuned for do not exist";
  design_.tuning = parse_tuning("lr=0.01,0.02,0.03,only");
  EXPECT_EQ(refusal(), path_.string() +
                           ": has runs with the lr that was tuned without the run "
                           "tune/momentum-0_lr-0.03_seed-1000001, which may change it\n"
                           "accepted: the same --tune and --tune-seeds, or another --out");
}

// The baseline is best at 1, ten times the usual rate of SGD.
constexpr const char* kLosses =
    "case $out in */tune/lr-0.032_*) loss=0.9;; */tune/lr-0.1_*) loss=0.5;;"
    " */tune/lr-0.32_*) loss=0.2;; */tune/lr-0.56_*) loss=0.15;; */tune/lr-1_*) loss=0.1;;"
    " */tune/lr-1.8_*) loss=0.3;; */tune/lr-3.2_*) loss=0.4;; *) loss=0.1;; esac\n";

TEST_F(Conducting, SearchesTheRateInRounds) {
  design_.tuning = parse_tuning("lr");
  const Conducted conducted = conduct(std::string(kLosses) + "finish $loss");
  ASSERT_TRUE(conducted.answer.has_value());
  ASSERT_EQ(conducted.tuning.size(), 1U);
  const TuningAnswer& tuned = conducted.tuning[0];
  std::vector<std::string> values;
  for (const TuningAnswer::Value& value : tuned.values) values.push_back(value.value);
  EXPECT_THAT(values, ElementsAre("0.032", "0.1", "0.32", "0.56", "1", "1.8", "3.2"));
  EXPECT_EQ(tuned.values[tuned.best].value, "1");
  EXPECT_FALSE(tuned.at_end);
  EXPECT_THAT(notes_->stages,
              ElementsAre("tuning lr", "tuning lr", "tuning lr", "tuning lr", "runs"));
  EXPECT_THAT(notes_->searches, ElementsAre(10)) << "five rates with two seeds, at least";
  EXPECT_EQ(conducted.answer->untuned, "");
  EXPECT_THAT(read_file(path_ / "plan.txt"),
              AllOf(HasSubstr("tune/lr-1.8_seed-1000002\n"), HasSubstr("\n64_linear_seed-42\n")));
  EXPECT_THAT(read_file(path_ / "runs/64_linear_seed-42.toml"), HasSubstr("\nlr = 1\n"));
  // Whoever reads it finds the same, and there is nothing to do.
  EXPECT_EQ(read_experiment(path_).tuning.at(0).values.size(), 7U);
  EXPECT_TRUE(conduct("exit 1").answer.has_value());
  EXPECT_THAT(notes_->started, IsEmpty());
}

// With the baseline's optimizer said, the axis makes no difference to it.
TEST_F(Conducting, TrainsEqualRunsOnce) {
  design_.tuning = parse_tuning("lr");
  set_values(design_, "rule", {"linear"});
  set_values(design_, "optimizer", {"sgd", "adam"});
  design_.baseline = parse_baseline("optimizer=sgd");
  const Conducted conducted = conduct(
      "case $out in *_lr-0.032_*) loss=0.9;; *_lr-0.1_*) loss=0.1;; *) loss=0.5;; esac\n"
      "finish $loss");
  ASSERT_TRUE(conducted.answer.has_value());
  ASSERT_EQ(conducted.tuning.size(), 2U);
  EXPECT_THAT(notes_->searches, ElementsAre(10)) << "that of one subject";
  EXPECT_EQ(conducted.tuning[0].values.size(), conducted.tuning[1].values.size());
  std::vector<std::string> ended = notes_->ended;
  std::ranges::sort(ended);
  EXPECT_EQ(std::ranges::adjacent_find(ended), ended.end());
  const auto is_baseline = [](const std::string& run) { return run.find("baseline") != run.npos; };
  EXPECT_EQ(std::ranges::count_if(ended, is_baseline), 1);
  EXPECT_EQ(std::ranges::count_if(conducted.answer->runs, is_baseline, &Answer::Run::name), 2)
      << "one for each of the cells";
  // Whoever reads it finds both, and there is nothing to do.
  EXPECT_EQ(read_experiment(path_).answer.runs.size(), 4U);
  EXPECT_TRUE(conduct("exit 1").answer.has_value());
  EXPECT_THAT(notes_->started, IsEmpty());
}

// Each attempt is killed at another round, and nobody does a run twice.
TEST_F(Conducting, GoesOnWithASearchThatWasKilled) {
  design_.tuning = parse_tuning("lr");
  std::vector<std::string> ended;
  for (const char* const killed :
       {"lr-0.32_seed-1000002", "lr-1_seed-1000001", "lr-1.8_seed-1000002"}) {
    const Conducted stopped = conduct(fmt::format(
        "case $out in */tune/{}) kill -KILL $$;; esac\n{}finish $loss", killed, kLosses));
    EXPECT_EQ(stopped.missing, 1) << killed;
    EXPECT_FALSE(stopped.answer.has_value());
    std::ranges::copy(notes_->ended, std::back_inserter(ended));
  }
  const Conducted whole = conduct(std::string(kLosses) + "finish $loss");
  ASSERT_TRUE(whole.answer.has_value());
  EXPECT_EQ(whole.tuning[0].values[whole.tuning[0].best].value, "1");
  std::ranges::copy(notes_->ended, std::back_inserter(ended));
  std::ranges::sort(ended);
  EXPECT_EQ(std::ranges::adjacent_find(ended), ended.end());
  EXPECT_EQ(ended.size(), 7U * 2U + 3U) << "those that tune, and those of the plan";
}

TEST_F(Conducting, GoesDownWhereTheUsualRateDiverges) {
  design_.tuning = parse_tuning("lr");
  const Conducted conducted = conduct(
      "case $out in */tune/lr-0.01_*) finish 0.1;; */tune/lr-0.0*) finish 0.2;;"
      " */tune/*) finish 0.5 diverged;; *) finish;; esac");
  ASSERT_TRUE(conducted.answer.has_value());
  const TuningAnswer& tuned = conducted.tuning.at(0);
  EXPECT_TRUE(tuned.values.back().is_lost);
  EXPECT_EQ(tuned.values[tuned.best].value, "0.01");
}

TEST_F(Conducting, GivesUpWhereNoRateTrains) {
  design_.tuning = parse_tuning("lr");
  design_.tuning_seeds = 1;
  for (const char* const script : {"finish 0.5 diverged", "finish 0.5"}) {
    std::filesystem::remove_all(path_);
    EXPECT_THAT(error_of([&] { return conduct(script); }),
                AllOf(HasSubstr("trains the baseline"), HasSubstr("accepted: ")))
        << script;
    EXPECT_EQ(notes_->ended.size(), kMostUntrained);
    // Again, which does nothing.
    EXPECT_THAT(error_of([&] { return conduct("exit 1"); }), HasSubstr("trains the baseline"));
    EXPECT_THAT(notes_->ended, IsEmpty());
  }
}

TEST_F(Conducting, DoesWhatTunesAlone) {
  design_.tuning = parse_tuning("lr");
  const Conducted tuned = conduct(std::string(kLosses) + "finish $loss", {.run = "tune"});
  EXPECT_FALSE(tuned.answer.has_value());
  EXPECT_EQ(tuned.missing, 0);
  EXPECT_EQ(notes_->ended.size(), 14U);
  EXPECT_FALSE(fs::exists(path_ / "runs/64_linear_seed-42"));
  // A run of a later round is one that can be named.
  DataFacts facts;
  EXPECT_THAT(names_of_runs(design_, path_, facts), Contains("tune/lr-1.8_seed-1000002"));
}

TEST_F(Conducting, DoesDamagedRunsAgain) {
  ASSERT_TRUE(conduct("finish").answer.has_value());
  EXPECT_THAT(notes_->damaged, IsEmpty());
  folder_.write("experiment/runs/64_linear_seed-42/metrics.jsonl", "");
  folder_.write("experiment/runs/64_constant_seed-42/summary.json", "{\"epochs\":");
  const Conducted conducted = conduct("finish");
  EXPECT_EQ(conducted.missing, 0);
  ASSERT_TRUE(conducted.answer.has_value());
  EXPECT_THAT(
      conducted.answer->names_of(ResultEnd::finished),
      UnorderedElementsAre("64_linear_seed-42", "64_constant_seed-42", HasSubstr("baseline")));
  EXPECT_THAT(notes_->started, UnorderedElementsAre("64_linear_seed-42", "64_constant_seed-42"));
  const std::string aside = (path_ / "damaged/64_").string();
  EXPECT_THAT(
      notes_->damaged,
      UnorderedElementsAre(AllOf(HasSubstr("metrics.jsonl: has changed since the run ended"),
                                 HasSubstr(": " + aside + "linear_seed-42")),
                           AllOf(HasSubstr("summary.json: not a summary of a run"),
                                 HasSubstr(": " + aside + "constant_seed-42"))));
}

// Its results cannot be read though it has just ended: it is missing, and tried again.
TEST_F(Conducting, LosesARunThatLeavesNoResult) {
  const Conducted conducted =
      conduct("finish; case $out in *linear*) echo >$out/summary.json;; esac");
  EXPECT_EQ(conducted.missing, 1);
  ASSERT_TRUE(conducted.answer.has_value());
  EXPECT_THAT(conducted.answer->names_of(ResultEnd::missing), ElementsAre("64_linear_seed-42"));
  EXPECT_THAT(notes_->missing, ElementsAre("64_linear_seed-42"));
}

}  // namespace
}  // namespace rubato
