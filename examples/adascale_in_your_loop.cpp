// AdaScale in a training loop of your own, around any torch::optim optimizer. A step has eight
// gradients, then four, then eight again, while the learning rate stays that of a single batch.
#include <cstdio>
#include <vector>

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <rubato/base/machine.hpp>
#include <rubato/libtorch/adascale.hpp>

int main(int, char** argv) {
  // This comes before anything else: it selects the right kernels for this CPU, if the libraries
  // chose others.
  rubato::use_right_kernels(argv);
  at::manual_seed(1);
  torch::nn::Linear model(10, 1);
  const at::Tensor truth = at::randn({10, 1});

  torch::optim::SGD sgd(model->parameters(), torch::optim::SGDOptions(0.02).momentum(0.5));
  rubato::AdaScale optimizer(sgd, {.num_gradients_to_accumulate = 8});
  for (int step = 0; step < 90; ++step) {
    if (step == 30 || step == 60) {
      const int gradients = step == 30 ? 4 : 8;
      optimizer.set_scale(gradients);
      optimizer.set_num_gradients_to_accumulate(gradients);
    }
    optimizer.zero_grad();
    double loss_sum = 0;
    const int gradients = static_cast<int>(optimizer.scale());
    for (int i = 0; i < gradients; ++i) {
      const at::Tensor input = at::randn({16, 10});
      const at::Tensor target = at::matmul(input, truth) + 0.1 * at::randn({16, 1});
      const at::Tensor loss = at::mse_loss(model(input), target);
      (loss / gradients).backward();
      loss_sum += loss.item<double>();
    }
    optimizer.step();
    if (step % 15 == 14) {
      std::printf("step %2d  scale %g  gain %.2f  loss %.4f\n", step + 1, optimizer.scale(),
                  optimizer.gain(), loss_sum / gradients);
    }
  }
}
