#include <cstdint>
#include <string>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <rubato/libtorch/module.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/steps/random.hpp>
#include <rubato/testing.hpp>

#include "support.hpp"
#include "support/error_of.hpp"

namespace rubato {

namespace {

constexpr std::int64_t kMinibatch = 4;

struct LinearThenNorm : torch::nn::Module {
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(3, 5));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(5));
  at::Tensor forward(const at::Tensor& x) { return norm->forward(linear->forward(x)); }
};

TensorDataset samples_of_24() {
  const at::Tensor values = at::sin(at::arange(24 * 8).to(at::kFloat)).view({24, 8});
  return {.inputs = values.narrow(1, 0, 3).contiguous() * 3 + 1,
          .targets = values.narrow(1, 3, 5).contiguous()};
}

TrainOptions one_step(std::int64_t cores, int threads = 2) {
  TrainOptions options;
  options.epochs = 1;
  options.minibatch_size = kMinibatch;
  options.cores = cores;
  options.threads = threads;
  options.exact = false;
  return options;
}

// A step of all 24 samples: six minibatches; with libtorch's own operators.
TorchTrainer local_trainer(const TrainOptions& options) {
  return {model_factory<LinearThenNorm>(),
          mse_loss(),
          samples_of_24(),
          test::trace_of({24}),
          options,
          {.operators = ReplacedOperators::none(), .buffers = BufferUse::local}};
}

TorchTrainer trained_locally(const TrainOptions& options) {
  TorchTrainer trainer = local_trainer(options);
  trainer.fit();
  return trainer;
}

// What a plain module's buffers are after these minibatches of the first epoch, one after the
// other.
std::vector<at::Tensor> expected_buffers(const TrainOptions& options,
                                         const std::vector<std::int64_t>& minibatches) {
  const TorchTrainer fresh = local_trainer(options);
  LinearThenNorm plain;
  const at::NoGradGuard no_grad;
  const auto parameters = plain.named_parameters();
  for (const NamedTensor& named : fresh.parameters()) {
    at::Tensor(parameters[named.name]).copy_(named.tensor);
  }
  const EpochSamples order(24, kMinibatch, options.seed, EpochIndex{0});
  const TensorDataset data = samples_of_24();
  for (const std::int64_t minibatch : minibatches) {
    plain.forward(test::rows_of(data.inputs, order.minibatch(MinibatchIndex{minibatch})));
  }
  std::vector<at::Tensor> buffers;
  for (const NamedTensor& named : fresh.buffers()) {
    buffers.push_back(plain.named_buffers()[named.name].clone());
  }
  return buffers;
}

void expect_buffers(const TorchTrainer& trainer, const std::vector<at::Tensor>& expected) {
  ASSERT_EQ(trainer.buffers().size(), 3);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(at::equal(trainer.buffers()[i].tensor, expected[i])) << trainer.buffers()[i].name;
  }
}

TEST(LocalBuffers, AreThoseOfTheFirstCore) {
  expect_buffers(trained_locally(one_step(1)), expected_buffers(one_step(1), {0, 1, 2, 3, 4, 5}));
  expect_buffers(trained_locally(one_step(3)), expected_buffers(one_step(3), {0, 1}));
  TrainOptions dealt = one_step(2);
  dealt.assignment = Assignment::strided;
  expect_buffers(trained_locally(dealt), expected_buffers(dealt, {0, 2, 4}));
}

TEST(LocalBuffers, DoNotDependOnThreads) {
  for (const std::int64_t cores : {1, 2, 5}) {
    const std::string expected = test::state_bytes(trained_locally(one_step(cores, 1)));
    for (const int threads : {2, 4}) {
      EXPECT_EQ(test::state_bytes(trained_locally(one_step(cores, threads))), expected)
          << cores << " cores, " << threads << " threads";
    }
  }
}

// The step is redone by the core that is left, from the buffers of before.
TEST(LocalBuffers, OfACoreThatDiedAreGone) {
  TrainOptions options = one_step(2);
  options.faults.planned = {{.core = CoreRank{1}, .step = StepIndex{0}, .substep = 2}};
  expect_buffers(trained_locally(options), expected_buffers(options, {0, 1, 2, 3, 4, 5}));
}

TEST(LocalBuffers, AreRefusedWhereTheResultIsToBeTheSameForAllCores) {
  TrainOptions exact = one_step(2);
  exact.exact = true;
  EXPECT_EQ(error_of([&] { trained_locally(exact); }),
            "local buffers make the result depend on the number of cores; accepted: with exact = "
            "false");
  TrainOptions dealt = one_step(2);
  dealt.dealing = Dealing::in_turns;
  EXPECT_THAT(error_of([&] { trained_locally(dealt); }),
              testing::HasSubstr("accepted: Dealing::by_thread"));
}

}  // namespace

}  // namespace rubato
