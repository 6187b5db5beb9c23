// Trains a torch::nn::Module of your own on tensors of your own, elastically: 8 cores at first, 3
// after a preemption, 16 in the end. It learns to distinguish two spirals.
#include <cmath>
#include <cstdio>
#include <vector>

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>

#include <rubato/base/machine.hpp>
#include <rubato/libtorch/module.hpp>
#include <rubato/libtorch/trainer.hpp>

struct Net : torch::nn::Module {
  torch::nn::Linear hidden{2, 64};
  torch::nn::Linear output{64, 2};
  Net() { register_module("hidden", hidden), register_module("output", output); }
  at::Tensor forward(const at::Tensor& x) { return output(at::tanh(hidden(x))); }
};

rubato::TensorDataset spirals(std::int64_t count) {
  const at::Tensor arm = at::randint(2, {count}, at::kLong);
  const at::Tensor along = at::rand({count}) * 3;
  const at::Tensor angle = along * 1.5 + arm * M_PI;
  return {at::stack({along * at::cos(angle), along * at::sin(angle)}, 1), arm};
}

int main(int, char** argv) {
  // This comes before anything else: it selects the right kernels for this CPU, if the libraries
  // chose others.
  rubato::use_right_kernels(argv);
  // The batches have 8, then 3, then 16 minibatches of 16 samples, for 40 steps each, over and
  // over.
  std::vector<rubato::TraceStep> steps(40, {.batch_size = 128, .cores = 8});
  steps.insert(steps.end(), 40, {.batch_size = 48, .cores = 3});
  steps.insert(steps.end(), 40, {.batch_size = 256, .cores = 16});
  rubato::Trace trace(steps, rubato::TraceEnd::cycle, "preemption");

  rubato::TrainOptions options;
  options.epochs = 20;
  options.minibatch_size = 16;
  options.learning_rate = 0.1;
  options.optimizer.momentum = 0.9;
  rubato::TorchTrainer trainer(rubato::model_factory<Net>(), rubato::cross_entropy_loss(),
                               spirals(4096), trace, options);
  trainer.set_test(spirals(1024));
  const rubato::TrainResult result = trainer.fit();
  std::printf("%lld steps, test accuracy %.1f %%\n", static_cast<long long>(result.steps),
              *result.final_test->accuracy * 100);
}
