// What a step leaves behind in the buffers of a model is the same on several hosts.

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <rubato/libtorch/module.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/testing.hpp>

#include "train/hosted.hpp"

namespace rubato {
namespace {

// Running statistics and their counter; counters of two types; what the first minibatch sets.
struct Counting : torch::nn::Module {
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(3, 5));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(5));
  at::Tensor seen = register_buffer("seen", at::zeros({2}, at::kLong));
  at::Tensor small = register_buffer("small", at::full({1}, 250, at::kByte));
  at::Tensor initialised = register_buffer("initialised", at::zeros({1}, at::kLong));
  at::Tensor first_mean = register_buffer("first_mean", at::zeros({1}));

  at::Tensor forward(const at::Tensor& x) {
    {
      const at::NoGradGuard no_grad;
      seen[0] += x.size(0);
      seen[1] += x.gt(0).sum();
      small += 5;
      if (initialised.item<std::int64_t>() == 0) {
        initialised.fill_(1);
        first_mean.fill_(x.mean());
      }
    }
    return norm->forward(linear->forward(x));
  }
};

Model counting() {
  Model model = make_model(std::make_shared<Counting>());
  for (const char* name : {"initialised", "first_mean"}) {
    model.buffer_rules.push_back({.buffer = name, .combination = BufferCombination::first});
  }
  return model;
}

std::unique_ptr<TorchTrainer> trainer_on(std::shared_ptr<Hosts> hosts) {
  const at::Tensor values = at::sin(at::arange(48 * 8).to(at::kFloat)).view({48, 8});
  const TensorDataset data{.inputs = values.narrow(1, 0, 3).contiguous() * 3 + 1,
                           .targets = values.narrow(1, 3, 5).contiguous()};
  const TrainOptions options{
      .epochs = 2, .minibatch_size = 2, .cores = 3, .threads = 2, .hosts = std::move(hosts)};
  return std::make_unique<TorchTrainer>(counting, mse_loss(), data,
                                        test::trace_of({4, 16, 8, 4, 16}), options);
}

TEST(HostsOfTorch, ComeToTheBuffersOfOne) {
  const auto alone = trainer_on(nullptr);
  alone->fit();
  for (const std::vector<double>& weights : {std::vector<double>{1, 1}, {1, 5, 2}}) {
    test::expect_bits(test::train_on(weights, trainer_on), *alone);
  }
}

}  // namespace
}  // namespace rubato
