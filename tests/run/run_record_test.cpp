#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/runs/run_configuration.hpp>

#include "runs/run/computed_by.hpp"
#include "runs/run/resumption.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/no_training.hpp"

namespace rubato {
namespace {

TEST(RunRecord, KeepsTheConfiguration) {
  const RunConfiguration run{.cores = 11, .learning_rate = 0.25};
  const State record = state_of(RunRecord(to_toml(run), {}), test::NoTraining());
  State checkpoint;
  checkpoint.put("observer/run", record);
  EXPECT_EQ(configuration_in(checkpoint), run);
  State damaged;
  damaged.put_text("observer/run/config", "cores = 8\nlr = 0\n");
  EXPECT_EQ(error_of([&] { return configuration_in(damaged); }),
            "the checkpoint's configuration:2: lr: '0' is out of range; accepted: a number greater "
            "than 0");
}

TEST(RunRecord, AddsUpItsSeconds) {
  State state;
  state.put_text("config", "");
  state.put("wall_seconds", 1000.0);
  RunRecord record("", {});
  EXPECT_LT(record.wall_seconds(), 900);
  const test::NoTraining training;
  load_state(record, state, training);
  EXPECT_GE(record.wall_seconds(), 1000);
  const State again = state_of(record, training);
  EXPECT_GE(again.value<double>("wall_seconds"), 1000);
}

TEST(RunRecord, KnowsTheFilesOfTheRunByTheirContent) {
  const test::NoTraining training;
  const auto record_of = [](const std::string& bytes) {
    const std::vector<WorkloadFile> files{{.option = "model", .extension = ".pt", .bytes = bytes}};
    return RunRecord("", files);
  };
  const State state = state_of(record_of("net"), training);
  load_state(record_of("net"), state, training);
  EXPECT_THAT(error_of([&] { load_state(record_of("other"), state, training); }),
              AllOf(StartsWith("--model: the file is not the one that the run was "
                               "trained with (SHA-256 "),
                    EndsWith("accepted: given-model.* of the run")));
}

TEST(KernelRecord, SaysWhatDiffers) {
  const test::NoTraining training;
  const auto difference = [&](const State& before, const std::string& kernels,
                              const std::string& libtorch) {
    KernelRecord record(kernels, libtorch);
    load_state(record, before, training);
    return record.difference();
  };
  const State before = state_of(KernelRecord("ATen AVX2", "1.13.1"), training);
  EXPECT_EQ(difference(before, "ATen AVX2", "1.13.1"), "");
  EXPECT_EQ(difference(State(), "ATen AVX2", ""), "") << "a checkpoint from before they were said";
  EXPECT_THAT(difference(before, "ATen SSE", "1.13.1"),
              StartsWith("the run was computed with ATen AVX2\nand continues with ATen "
                         "SSE: its bits may differ"));
  EXPECT_EQ(
      difference(before, "ATen AVX2", "2.6.0"),
      "the run was computed with libtorch 1.13.1\nand continues with libtorch 2.6.0: its bits "
      "may differ from those of a run that was not interrupted");
}

}  // namespace
}  // namespace rubato
