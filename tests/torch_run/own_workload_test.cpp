// A program's own model and data as the workload of a run.

#include <string>

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/linear.h>

#include <rubato/libtorch/module.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/libtorch/workload.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

RunConfiguration own_configuration(const std::string& more = "") {
  return parse_configuration(
      "model = \"own\"\ndata = \"own\"\ntrace = 16\nlr = 0.5\nminibatch = 8\n" + more, "test");
}

// The sign of the first of two numbers.
OwnWorkload own(float shift = 0) {
  at::Tensor inputs = at::linspace(-1, 1, 128).reshape({64, 2}) + shift;
  at::Tensor targets = (inputs.select(1, 0) > 0).to(at::kLong);
  const auto data = make_dataset({inputs}, {targets});
  return {.model = model_factory<torch::nn::LinearImpl>(2, 2),
          .loss = cross_entropy_loss(),
          .train = data,
          .test = data};
}

std::shared_ptr<const Workload> workload_of(OwnWorkload parts) {
  return own_workload(std::move(parts), torch_options(own_configuration()));
}

TEST(OwnWorkload, IsTrainedByARun) {
  rubato::Run run(own_configuration("epochs = 20\n"), workload_of(own()));
  const RunOutcome outcome = run.execute();
  ASSERT_TRUE(outcome.summary);
  EXPECT_GT(outcome.summary->result.final_test->accuracy, 0.9);
  EXPECT_EQ(outcome.summary->model, "own");
  EXPECT_EQ(outcome.summary->data, "own");
  EXPECT_EQ(run.workload().description(), "own model: 64 training and 64 test samples");
  EXPECT_EQ(run.workload().gradient_bytes(), 6 * 4);
}

TEST(OwnWorkload, GoesOnWithTheSameDataAlone) {
  const test::TempFolder folder;
  const auto path = folder.path() / "run";
  rubato::Run(own_configuration("epochs = 1\n"), workload_of(own()), RunLocation::create(path))
      .execute();
  const RunConfiguration longer = own_configuration("epochs = 2\n");
  EXPECT_THAT(error_of([&] {
                rubato::Run(longer, workload_of(own(0.5F)), RunLocation::resume(path, longer));
              }),
              HasSubstr("data"));
  rubato::Run resumed(longer, workload_of(own()), RunLocation::resume(path, longer));
  const RunOutcome outcome = resumed.execute();
  rubato::Run whole(longer, workload_of(own()));
  EXPECT_EQ(outcome.summary->weights_sha256, whole.execute().summary->weights_sha256);
}

TEST(OwnWorkload, NeedsAllOfItsParts) {
  for (const char* missing : {"model", "loss", "training data"}) {
    OwnWorkload parts = own();
    if (missing == std::string("model")) parts.model = {};
    if (missing == std::string("loss")) parts.loss = {};
    if (missing == std::string("training data")) parts.train = nullptr;
    EXPECT_THAT(error_of([&] { return workload_of(parts); }),
                HasSubstr(std::string("a workload without ") +
                          (missing == std::string("training data") ? "" : "a ") + missing));
  }
}

TEST(OwnWorkload, IsNothingThatCommandsHave) {
  EXPECT_THAT(error_of([] { return torch_workload({.model = std::string(kOwn)}); }),
              HasSubstr("--model own: the model is in the program that trained it"));
  EXPECT_THAT(error_of([] { return torch_workload({.data = std::string(kOwn)}); }),
              HasSubstr("--data own: the data are in the program that trained on them"));
}

TEST(IntraOpThreads, AreThoseOfBeforeWhenItGoes) {
  at::set_num_threads(2);
  {
    const IntraOpThreads kept;
    use_one_intra_op_thread();
    EXPECT_EQ(at::get_num_threads(), 1);
  }
  EXPECT_EQ(at::get_num_threads(), 2);
  // And again: not at the first call alone.
  use_one_intra_op_thread();
  EXPECT_EQ(at::get_num_threads(), 1);
}

}  // namespace
}  // namespace rubato
