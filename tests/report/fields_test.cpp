// The fields of a line of metrics.jsonl and of summary.json. That every
// column is there is tested in records_test.cpp.

#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <rubato/runs/records.hpp>
#include <rubato/steps/plan.hpp>

#include "base/machine/instruction_set.hpp"
#include "support/json_fields.hpp"
#include "support/no_training.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using nlohmann::json;

RunSummary full_summary() {
  RunSummary summary;
  summary.result = {.epochs = 2,
                    .part = EpochPart{.steps = 5, .samples = 160, .of_steps = 48},
                    .steps = 10,
                    .samples = 1000,
                    .skipped_steps = 3,
                    .train_seconds = 4,
                    .final_test = Evaluation{.samples = 100,
                                             .loss = 0.125,
                                             .accuracy = 0.75,
                                             .top_k_accuracy = 0.875,
                                             .mse = 0.5,
                                             .perplexity = 1.25,
                                             .bits_per_byte = 1.75},
                    .best_test_accuracy = 0.8125,
                    .iterations = 12.5,
                    .stopped = "not this one"};
  summary.options.seed = std::numeric_limits<std::uint64_t>::max();
  summary.options.minibatch_size = 16;
  summary.options.cores = 6;
  summary.options.threads = 3;
  summary.may_skip = true;
  summary.engine = {.engine = "libtorch",
                    .kernels = {{"OpenBLAS", "Haswell"}, {"ATen", "AVX2"}, {"oneDNN", "avx2"}},
                    .versions = {{"torch", "2"}, {"onetbb", "3"}, {"blas", "4"}}};
  summary.kernels_wanted = "portable";
  summary.kernel_start = KernelStart{.kernels = Kernels::portable, .openblas_before = "Prescott"};
  summary.model = "mlp";
  summary.data = "digits";
  summary.trace = "elastic";
  summary.rule = "root";
  summary.weights_sha256 = "abc";
  summary.metrics_sha256 = "def";
  summary.wall_seconds = 5;
  summary.gradient_buffers = 7;
  summary.stopped = "the reason";
  return summary;
}

TEST(Summary, HasTheseFields) {
  const std::string expected = R"({
      "final_test_accuracy": 0.75, "best_test_accuracy": 0.8125,
      "final_test_top_k_accuracy": 0.875, "final_test_loss": 0.125,
      "final_test_mse": 0.5, "final_test_perplexity": 1.25, "final_test_bits_per_byte": 1.75,
      "epochs": 2, "part_of_epoch": {"steps": 5, "samples": 160, "of_steps": 48},
      "steps": 10, "samples": 1000, "iterations": 12.5, "wall_seconds": 5.0, "train_seconds": 4.0,
      "samples_per_second": 250.0, "weights_sha256": "abc", "metrics_sha256": "def", "model": "mlp", "data": "digits",
      "trace": "elastic", "rule": "root", "seed": 18446744073709551615, "minibatch": 16,
      "cores": 6, "threads": 3, "gradient_buffers": 7, "stopped": "the reason",
      "engine": "libtorch",
      "kernels": {"wanted": "portable", "cpu": "", "openblas": "Haswell", "aten": "AVX2",
                  "onednn": "avx2", "openblas_by_itself": "Prescott"},
      "versions": {"rubato": "", "torch": "2", "onetbb": "3", "blas": "4"},
      "skipped_steps": 3})";
  auto parsed = json::parse(to_json(full_summary()));
  EXPECT_EQ(parsed["kernels"]["cpu"], choice_name(kInstructionSets, cpu_instruction_set()));
  parsed["kernels"]["cpu"] = "";
  EXPECT_THAT(parsed["versions"]["rubato"].get<std::string>(),
              testing::ContainsRegex("^[0-9]+[.]"));
  parsed["versions"]["rubato"] = "";
  test::expect_fields(parsed, expected);
}

TEST(Summary, HasNullsWhereThereIsNothing) {
  RunSummary summary;
  summary.engine.kernels = {{"OpenBLAS", ""}, {"ATen", ""}, {"oneDNN", ""}};
  const auto parsed = json::parse(to_json(summary));
  for (const char* name :
       {"final_test_accuracy", "best_test_accuracy", "final_test_top_k_accuracy", "final_test_loss",
        "final_test_mse", "final_test_perplexity", "final_test_bits_per_byte", "part_of_epoch",
        "stopped", "metrics_sha256"}) {
    EXPECT_TRUE(parsed.at(name).is_null()) << name;
  }
  for (const char* name : {"openblas", "aten", "onednn", "openblas_by_itself"}) {
    EXPECT_TRUE(parsed.at("kernels").at(name).is_null()) << name;
  }
  EXPECT_EQ(parsed.at("samples_per_second"), 0) << "of no time";
  EXPECT_FALSE(parsed.contains("skipped_steps")) << "only float16 skips";
  // A test set of no classes.
  summary.result.final_test =
      Evaluation{.samples = 3, .loss = 0.5, .accuracy = {}, .top_k_accuracy = {}};
  const auto regression = json::parse(to_json(summary));
  EXPECT_EQ(regression.at("final_test_loss"), 0.5);
  EXPECT_TRUE(regression.at("final_test_accuracy").is_null());
}

TEST(Metrics, HaveTheseFields) {
  const test::TempFolder folder;
  const auto file = folder.path() / "metrics.jsonl";
  MetricsWriter metrics(file);
  test::NoTraining training;
  StepRecord step{.epoch = EpochIndex{1},
                  .plan = {.index = StepIndex{7},
                           .batch_size = 160,
                           .cores = 3,
                           .first_minibatch = MinibatchIndex{4},
                           .minibatches = 5},
                  .assignment = Assignment::contiguous,
                  .scale = 1.25,
                  .learning_rate = 0.0125,
                  .gain = 1.5,
                  .iterations = 9.5,
                  .gradient_norm = 2.5,
                  .noise_scale = 640,
                  .measured_gain = 1.125,
                  .loss = 0.5,
                  .applied = false,
                  .loss_scale = 1024,
                  .skipped = true,
                  .digest = Digest{.high = 0xab, .low = 0x1},
                  .decision_inputs = {{"target", 812.5}, {"noise_scale", 640}},
                  .minibatches = {},
                  .seconds = {.data = 1, .compute = 2, .reduce = 3, .update = 4, .wall = 5}};
  const std::array<FaultRecord, 2> faults{
      {{.core = CoreRank{2}, .substep = 1}, {.core = CoreRank{0}, .substep = 3}}};
  metrics.on_fault(training, step.plan, faults, 5);
  metrics.on_step(training, step);
  EpochRecord epoch{.epoch = EpochIndex{2},
                    .whole = false,
                    .steps = 3,
                    .samples = 320,
                    .train_loss = 0.75,
                    .test = Evaluation{.samples = 100,
                                       .loss = 0.25,
                                       .accuracy = 0.5,
                                       .top_k_accuracy = 0.625,
                                       .mse = 0.375,
                                       .perplexity = 1.5,
                                       .bits_per_byte = 2.5},
                    .metrics = {{.name = "f1", .value = 0.875}, {.name = "size", .value = 3}},
                    .train_seconds = 2,
                    .test_seconds = 1};
  metrics.on_epoch(training, epoch);
  epoch.whole = true;
  epoch.metrics.clear();
  epoch.test->accuracy.reset();
  epoch.test->top_k_accuracy.reset();
  epoch.test->mse.reset();
  epoch.test->perplexity.reset();
  epoch.test->bits_per_byte.reset();
  metrics.on_epoch(training, epoch);
  StepRecord usual;
  usual.plan = step.plan;
  metrics.on_step(training, usual);
  const std::array<TensorStatistics, 2> tensors{
      {{.name = "w", .gradient = true, .norm = 4, .mean = 0.5, .min = -1, .max = 2},
       {.name = "w", .gradient = false, .norm = 3, .mean = 0.25, .min = -2, .max = 1}}};
  metrics.write(step.plan, tensors);
  const State state = state_of(metrics, training);
  EXPECT_EQ(state.count("bytes"), static_cast<std::int64_t>(std::filesystem::file_size(file)));
  const std::vector<std::string> expected{
      R"({"kind": "fault", "step": 7, "core": 2, "substep": 1, "cores_left": 5})",
      R"({"kind": "fault", "step": 7, "core": 0, "substep": 3, "cores_left": 5})",
      R"({"kind": "step", "step": 7, "epoch": 1, "batch": 160, "cores": 3, "scale": 1.25,
          "lr": 0.0125, "gain": 1.5, "iterations": 9.5, "loss": 0.5, "applied": false,
          "gradient_norm": 2.5, "noise_scale": 640.0, "measured_gain": 1.125,
          "loss_scale": 1024.0, "skipped": true, "digest": "00000000000000ab0000000000000001",
          "decision": {"target": 812.5, "noise_scale": 640.0}, "substeps": [2, 2, 1],
          "seconds": {"data": 1.0, "compute": 2.0, "reduce": 3.0, "update": 4.0, "wall": 5.0}})",
      R"({"kind": "epoch", "epoch": 2, "steps": 3, "samples": 320, "train_loss": 0.75,
          "whole": false, "test_loss": 0.25, "test_accuracy": 0.5, "test_top_k_accuracy": 0.625,
          "test_mse": 0.375, "test_perplexity": 1.5, "test_bits_per_byte": 2.5, "metrics": {"f1": 0.875, "size": 3.0}, "seconds": {"train": 2.0, "test": 1.0}})",
      R"({"kind": "epoch", "epoch": 2, "steps": 3, "samples": 320, "train_loss": 0.75,
          "test_loss": 0.25, "seconds": {"train": 2.0, "test": 1.0}})",
      R"({"kind": "step", "step": 7})",
      R"({"kind": "monitor", "step": 7, "tensor": "w", "of": "gradient", "norm": 4.0, "mean": 0.5,
          "min": -1.0, "max": 2.0})",
      R"({"kind": "monitor", "step": 7, "tensor": "w", "of": "parameter", "norm": 3.0,
          "mean": 0.25, "min": -2.0, "max": 1.0})"};
  std::istringstream lines(test::read_file(file));
  std::vector<json> records;
  for (const std::string& wanted : expected) {
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    records.push_back(json::parse(line));
    test::expect_fields(records.back(), wanted);
  }
  // What is as usual, or was not measured, is left out.
  for (const char* key : {"whole", "test_accuracy", "test_top_k_accuracy", "test_mse",
                          "test_perplexity", "test_bits_per_byte", "metrics", "clock"}) {
    EXPECT_FALSE(records[4].contains(key)) << key;
  }
  for (const char* key : {"applied", "gradient_norm", "noise_scale", "measured_gain", "loss_scale",
                          "skipped", "digest", "clock", "decision"}) {
    EXPECT_FALSE(records[5].contains(key)) << key;
  }
  std::string more;
  EXPECT_FALSE(std::getline(lines, more));
}

}  // namespace
}  // namespace rubato
