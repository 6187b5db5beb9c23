#include "runs/experiment/conduct/experiment_folder.hpp"

#include <gmock/gmock.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "runs/experiment/design/design_file.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::read_file;

constexpr const char* kTrace = "step,batchsize\n0,128\n1,256\n";

class ExperimentFolders : public testing::Test {
 protected:
  [[nodiscard]] Design design_with(const std::string& trace) const {
    Design design;
    design.base.model = "softmax";
    set_values(design, "trace", {trace, "128"});
    set_values(design, "rule", {"linear", "constant"});
    return design;
  }

  const test::TempFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "experiment";
};

TEST_F(ExperimentFolders, KeepTheTraces) {
  const std::string trace = folder_.write("a.csv", kTrace);
  const ExperimentFolder folder(path_);
  const Design design = folder.adopt(design_with(trace));
  EXPECT_THAT(values_of(design, "trace"), ElementsAre((path_ / "traces/a.csv").string(), "128"));
  EXPECT_EQ(read_file(path_ / "traces/a.csv"), kTrace);
  folder.write_design(design);
  EXPECT_THAT(read_file(path_ / "design.toml"), HasSubstr(R"(trace = ["traces/a.csv", "128"])"));
  // The design in the folder is the same, and adopted as it is.
  EXPECT_EQ(read_design(path_ / "design.toml").design, design);
  EXPECT_EQ(folder.adopt(design), design);
}

TEST_F(ExperimentFolders, RefuseAnotherTraceOfTheSameName) {
  const std::string trace = folder_.write("a.csv", kTrace);
  const ExperimentFolder folder(path_);
  static_cast<void>(folder.adopt(design_with(trace)));
  folder_.write("a.csv", "step,batchsize\n0,64\n");
  EXPECT_THAT(error_of([&] { return folder.adopt(design_with(trace)); }),
              HasSubstr("differs from the trace of that name"));
  EXPECT_THAT(error_of([&] { return folder.adopt(design_with("none.csv")); }),
              HasSubstr("none.csv"));
}

TEST_F(ExperimentFolders, HaveConfigurationsThatMayBeMoved) {
  const std::string trace = folder_.write("a.csv", kTrace);
  RunFiles files;
  {
    const ExperimentFolder folder(path_);
    const ExperimentPlan plan = plan_of(folder.adopt(design_with(trace)));
    EXPECT_EQ(plan.runs[0].name, "a_linear_seed-42");
    files = folder.files_of(plan.runs[0], false);
    folder.prepare(plan.runs[0], files);
  }
  const auto moved = folder_.path() / "moved";
  std::filesystem::rename(path_, moved);
  const RunConfiguration run = read_configuration(moved / "runs/a_linear_seed-42.toml");
  EXPECT_TRUE(std::filesystem::equivalent(run.trace.text(), moved / "traces/a.csv"));
  EXPECT_EQ(run.rule, "linear");
}

TEST_F(ExperimentFolders, RefuseRunsWithOtherOptions) {
  const ExperimentFolder folder(path_);
  ExperimentPlan plan = plan_of(folder.adopt(design_with("256")));
  PlannedRun run = plan.runs[0];
  const RunFiles files = folder.files_of(run, false);
  folder.prepare(run, files);
  folder.prepare(run, files);
  run.configuration.threads = 7;
  folder.prepare(run, files);
  run.configuration.learning_rate = 0.5;
  EXPECT_THAT(error_of([&] { folder.prepare(run, files); }),
              AllOf(HasSubstr("the run 256_linear_seed-42 exists with other options: --lr "
                              "was 0.01, is 0.5"),
                    HasSubstr("accepted: ")));
}

TEST_F(ExperimentFolders, AreNobodyElses) {
  folder_.write("other/file", "");
  folder_.write("project/workers/far.00000000.7/file", "");
  folder_.write("project/plan.txt", "");
  folder_.write("staff/workers/alice/file", "");
  for (const char* const foreign : {"other", "project", "staff"}) {
    EXPECT_THAT(error_of([&] { const ExperimentFolder other(folder_.path() / foreign); }),
                HasSubstr("is not the folder of an experiment"));
  }
  std::filesystem::create_directories(folder_.path() / "made/workers/far.00000000.7");
  EXPECT_EQ(error_of([&] { const ExperimentFolder other(folder_.path() / "made"); }), "no error")
      << "another process is just making it";
  std::filesystem::create_directory(folder_.path() / "empty");
  EXPECT_EQ(error_of([&] { const ExperimentFolder other(folder_.path() / "empty"); }), "no error");
}

TEST_F(ExperimentFolders, ListTheirRuns) {
  Design design = design_with("256");
  design.tuning = parse_tuning("lr=0.01,0.02");
  design.tuning_seeds = 1;
  const ExperimentFolder folder(path_);
  folder.write_plan(names_of_runs(design));
  EXPECT_EQ(read_file(path_ / "plan.txt"),
            "tune/lr-0.01_seed-1000001\ntune/lr-0.02_seed-1000001\n256_linear_seed-42\n"
            "256_constant_seed-42\n128_linear_seed-42\n128_constant_seed-42\n");
}

}  // namespace
}  // namespace rubato
