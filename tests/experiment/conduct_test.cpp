#include "runs/experiment/conduct/conduct.hpp"

#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

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
  void on_start(const std::string& run) override { started.push_back(run); }
  void on_end(const std::string& /*run*/, const RunResult& /*result*/,
              double /*seconds*/) override {}
  void on_damaged(const std::string& run, const std::string& what, const fs::path& aside) override {
    damaged.push_back(fmt::format("{}: {}: {}", run, what, aside.string()));
  }
  void on_missing(const std::string& run, const std::string& /*why*/) override {
    missing.push_back(run);
  }
  void on_tick() override {}
  void on_stage_end() override {}

  std::vector<std::string> stages;
  std::vector<std::string> started;
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
  Conducted conduct(const std::string& script) {
    const fs::path program = folder_.write(
        "program",
        "#!/bin/bash\n"
        "case $2 in --resume) out=$3;; *) out=$5;; esac\n"
        "finish() {\n"
        "  mkdir -p $out\n"
        "  echo '{\"kind\":\"epoch\",\"steps\":9,\"samples\":99,\"test_loss\":0.5}' "
        ">$out/metrics.jsonl\n"
        "  digest=$(sha256sum $out/metrics.jsonl)\n"
        "  echo '{\"epochs\":1,\"steps\":9,\"samples\":99,\"iterations\":9,\"wall_seconds\":1,"
        "\"stopped\":null,\"final_test_loss\":0.5,\"metrics_sha256\":\"'${digest%% *}'\"}' "
        ">$out/summary.json\n"
        "}\n" +
            script);
    fs::permissions(program, fs::perms::owner_all);
    const ExperimentFolder folder(path_);
    const Design design = folder.adopt(design_);
    folder.write_design(design);
    DataFacts facts;
    notes_.emplace();
    return rubato::conduct(design, folder, facts, {.program = program, .stopping = {}}, *notes_);
  }

  const test::TempFolder folder_;
  const fs::path path_ = folder_.path() / "experiment";
  Design design_;
  std::optional<StageNotes> notes_;
};

// What it would have been is not known: the runs must not have a rate that was chosen without it.
TEST_F(Conducting, TunesNothingByRunsOneOfWhichWasKilled) {
  design_.tuning = parse_tuning("lr=0.01,0.02");
  const Conducted killed = conduct("case $out in */tune/*0.02*) kill -KILL $$;; esac; finish");
  EXPECT_EQ(killed.missing, 1);
  EXPECT_FALSE(killed.answer.has_value());
  EXPECT_THAT(notes_->stages, ElementsAre("tuning lr"));
  const Conducted whole = conduct("finish");
  EXPECT_EQ(whole.missing, 0);
  EXPECT_TRUE(whole.answer.has_value());
  EXPECT_THAT(notes_->stages, ElementsAre("tuning lr", "runs"));
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
