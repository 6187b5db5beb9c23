// What the headers show, in programs that use libtorch: FragmentsTest compares.
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/jit/serialization/import.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <rubato/hosts/elastic_run.hpp>
#include <rubato/libtorch/adascale.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/module.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/libtorch/workload.hpp>
#include <rubato/loop/verify.hpp>
#include <rubato/runs/run.hpp>

namespace rubato::fragments {

struct Net : torch::nn::Module {
  explicit Net(std::int64_t hidden = 8)
      : linear(register_module("linear", torch::nn::Linear(hidden, hidden))) {}
  at::Tensor forward(const at::Tensor& input) { return linear->forward(input); }
  torch::nn::Linear linear;
};

void module_factory(std::int64_t hidden) {
  const rubato::ModelFactory factory = rubato::model_factory<Net>(hidden);
  static_cast<void>(factory);
}

void scripted() {
  const auto factory = rubato::script_factory(torch::jit::load("net.pt"));
  static_cast<void>(factory);
}

void adascale(const std::shared_ptr<Net>& model, const Loss& loss, std::int64_t steps,
              const std::array<std::pair<at::Tensor, at::Tensor>, 4>& four_batches) {
  torch::optim::SGD sgd(model->parameters(), 0.1);
  rubato::AdaScale optimizer(sgd, {.num_gradients_to_accumulate = 4});
  for (std::int64_t step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    for (const auto& [input, target] : four_batches) {
      (loss(model->forward(input), target) / 4).backward();
    }
    optimizer.step();
  }
}

TorchOptimizerMaker torch_optimizer_maker() {
  return [](std::vector<torch::optim::OptimizerParamGroup> groups) {
    return std::make_unique<torch::optim::Adam>(std::move(groups));
  };
}

void torch_trainer(const TensorDataset& train_set, const TensorDataset& test_set,
                   const TrainOptions& options) {
  rubato::TorchTrainer trainer(rubato::model_factory<Net>(), rubato::nll_loss(), train_set,
                               rubato::Trace::read_csv("trace.csv"), options);
  trainer.set_test(test_set);
  const rubato::TrainResult result = trainer.fit();
  static_cast<void>(result);
}

void own_workload(const at::Tensor& inputs, const at::Tensor& targets) {
  rubato::RunConfiguration configuration{.data = std::string(rubato::kOwn),
                                         .model = std::string(rubato::kOwn)};
  rubato::Run run(configuration,
                  rubato::own_workload({.model = rubato::model_factory<Net>(),
                                        .loss = rubato::cross_entropy_loss(),
                                        .train = rubato::make_dataset({inputs}, {targets})},
                                       rubato::torch_options(configuration)));
}

void train_on_elastic_hosts() {
  const auto configuration = rubato::read_configuration("run.toml");
  const auto result = rubato::train_on_elastic_hosts(
      configuration, rubato::torch_workload(configuration), rubato::elastic_hosts,
      {.out = "runs/spring",
       .hosts = {.meeting = {.count = 2, .address = "node0", .run = "spring"}}});
  static_cast<void>(result);
}

MakeTrainer verify(const Loss& loss, const TensorDataset& data, const Trace& trace,
                   const TrainOptions& options) {
  return [=](const auto& change) {
    rubato::TrainOptions mine = options;
    change(mine);
    return rubato::TorchTrainer(rubato::model_factory<Net>(), loss, data, trace, mine);
  };
}

}  // namespace rubato::fragments
