#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <torch/nn/modules/linear.h>

#include <rubato/libtorch/module.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "support.hpp"
#include "support/recorded.hpp"

namespace rubato::test {

/// Forty-eight samples in three classes; an epoch is twelve minibatches of four.
inline TensorDataset dataset(at::ScalarType type = at::kDouble) {
  at::manual_seed(1);
  const at::Tensor inputs = at::randn({48, 6}, type);
  return {.inputs = inputs, .targets = inputs.narrow(1, 0, 3).argmax(1)};
}

/// Two linear layers.
struct Net : torch::nn::Module {
  torch::nn::Linear hidden = register_module("hidden", torch::nn::Linear(6, 5));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(5, 3));

  explicit Net(at::ScalarType type = at::kDouble) { to(type); }
  at::Tensor forward(const at::Tensor& x) { return out(at::tanh(hidden(x))); }
};

/// A rule of the test's own.
template <class Make>
RuleChoice own_rule(const std::string& name, Make make) {
  RuleRegistry rules;
  rules.add(name, std::move(make));
  return rules.choose(name);
}

inline TrainOptions options_of(RuleChoice rule = "linear") {
  return {.epochs = 2,
          .minibatch_size = 4,
          .learning_rate = 0.1,
          .reference_batch_size = 4,
          .rule = std::move(rule),
          .optimizer = {},
          .cores = 3,
          .threads = 2};
}

inline TorchTrainer trainer_on(const Trace& trace, const AllOptions& options) {
  return TorchTrainer(model_factory<Net>(), cross_entropy_loss(), dataset(), trace, options,
                      options.torch);
}

inline std::vector<double> rates_of(const Recorder& recorder) {
  std::vector<double> rates;
  for (const StepRecord& step : recorder.steps) rates.push_back(step.learning_rate);
  return rates;
}

}  // namespace rubato::test
