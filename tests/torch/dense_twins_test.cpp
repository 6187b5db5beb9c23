// The networks of rubato::eigen beside their twins of libtorch: the same initial values, and the
// same training but for rounding.

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/linear.h>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/module.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/loop/eigen.hpp>

#include "support.hpp"

namespace rubato {
namespace {

struct TwinData {
  ImageSet images = render_digits(600, 1);
  PixelStatistics statistics = pixel_statistics(images);
  ImageSet held_out = render_digits(300, 2);
};

const TwinData& twin_data() {
  static const TwinData data;
  return data;
}

TrainOptions twin_options() {
  return {.epochs = 2,
          .minibatch_size = 16,
          .learning_rate = 0.05,
          .reference_batch_size = 64,
          .optimizer = {.momentum = 0.9},
          .seed = 7,
          .top_k = 3,
          .threads = 2};
}

std::unique_ptr<ObjectiveOf<float>> dense_twin(const std::string& name) {
  const TwinData& data = twin_data();
  const auto train = to_rows<float>(data.images, data.statistics);
  const auto test = to_rows<float>(data.held_out, data.statistics);
  if (name == "softmax") return softmax_regression(train, {.test = test, .seed = 7});
  return multi_layer_perceptron(train, {.hidden = {128, 64}, .test = test, .seed = 7});
}

TorchTrainer torch_twin(const std::string& name) {
  const TwinData& data = twin_data();
  TorchTrainer trainer(builtin_model(name, {}), nll_loss(),
                       to_tensors(data.images, data.statistics), Trace::constant(64),
                       twin_options());
  trainer.set_test(to_tensors(data.held_out, data.statistics));
  return trainer;
}

TEST(DenseTwins, HaveTheSameData) {
  const TwinData& data = twin_data();
  const auto rows = to_rows<float>(data.images, data.statistics);
  const TensorDataset tensors = to_tensors(data.images, data.statistics);
  ASSERT_EQ(static_cast<std::size_t>(tensors.inputs.numel()), rows.inputs().size());
  EXPECT_EQ(
      std::memcmp(tensors.inputs.data_ptr(), rows.inputs().data(), rows.inputs().size_bytes()), 0);
  EXPECT_EQ(
      std::memcmp(tensors.targets.data_ptr(), rows.classes().data(), rows.classes().size_bytes()),
      0);
}

class DenseTwins : public testing::TestWithParam<std::string> {};

TEST_P(DenseTwins, BeginWithTheSameBits) {
  const auto dense = dense_twin(GetParam());
  const TorchTrainer torch = torch_twin(GetParam());
  ASSERT_EQ(dense->parameters().size(), torch.parameters().size());
  for (std::size_t i = 0; i < torch.parameters().size(); ++i) {
    const NamedArray& array = dense->parameters()[i];
    const NamedTensor& named = torch.parameters()[i];
    EXPECT_EQ(array.name, named.name);
    EXPECT_EQ(array.shape, named.tensor.sizes().vec());
    const auto bytes = array.bytes();
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
              test::bytes_of(named.tensor))
        << array.name;
  }
}

TEST_P(DenseTwins, TrainToTheSameButForRounding) {
  Trainer dense(dense_twin(GetParam()), Trace::constant(64), twin_options());
  TorchTrainer torch = torch_twin(GetParam());
  const auto of_dense = dense.add_observer<test::Recorder>();
  const auto of_torch = torch.add_observer<test::Recorder>();
  dense.fit();
  torch.fit();
  ASSERT_EQ(of_dense->steps.size(), of_torch->steps.size());
  for (std::size_t i = 0; i < of_dense->steps.size(); ++i) {
    EXPECT_NEAR(of_dense->steps[i].loss, of_torch->steps[i].loss, 1e-4) << i;
  }
  for (std::size_t i = 0; i < of_dense->epochs.size(); ++i) {
    EXPECT_NEAR(of_dense->epochs[i].test->loss, of_torch->epochs[i].test->loss, 1e-4);
    EXPECT_NEAR(*of_dense->epochs[i].test->accuracy, *of_torch->epochs[i].test->accuracy, 0.01);
    EXPECT_NEAR(*of_dense->epochs[i].test->top_k_accuracy,
                *of_torch->epochs[i].test->top_k_accuracy, 0.01);
  }
  for (std::size_t i = 0; i < torch.parameters().size(); ++i) {
    const at::Tensor of = tensor_of(dense.parameters()[i]).tensor;
    const at::Tensor expected = torch.parameters()[i].tensor;
    EXPECT_LT((of - expected).norm().item<double>(), 1e-4 * expected.norm().item<double>())
        << dense.parameters()[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, DenseTwins, testing::Values("softmax", "mlp"),
                         [](const auto& test) { return test.param; });

// Double precision, tanh and mse_loss.
struct TanhNet : torch::nn::Module {
  torch::nn::Linear linear1 = register_module("linear1", torch::nn::Linear(6, 5));
  torch::nn::Linear linear2 = register_module("linear2", torch::nn::Linear(5, 3));

  TanhNet() { to(at::kDouble); }
  at::Tensor forward(const at::Tensor& x) { return linear2(at::tanh(linear1(x))); }
};

TEST(DenseTwinsInDouble, HaveTheGradientsOfLibtorch) {
  at::manual_seed(1);
  const at::Tensor inputs = at::randn({48, 6}, at::kDouble);
  const at::Tensor targets = at::randn({48, 3}, at::kDouble);
  const auto vector_of = [](const at::Tensor& tensor) {
    const auto* data = tensor.data_ptr<double>();
    return std::vector<double>(data, data + tensor.numel());
  };
  auto dense = multi_layer_perceptron(
      DenseDataset<double>::with_targets(vector_of(inputs), vector_of(targets), 3),
      {.hidden = {5}, .activation = Activation::tanh});
  // From the values of the one, whichever they are.
  TorchTrainer torch(model_factory<TanhNet>(), mse_loss(), {.inputs = inputs, .targets = targets},
                     Trace::constant(48), {.epochs = 1, .minibatch_size = 48, .threads = 1});
  for (std::size_t i = 0; i < torch.parameters().size(); ++i) {
    tensor_of(dense->parameters()[i]).tensor.copy_(torch.parameters()[i].tensor);
  }
  Trainer trainer(std::move(dense), Trace::constant(48),
                  {.epochs = 1, .minibatch_size = 48, .threads = 1});
  const auto of_dense = trainer.add_observer<test::Recorder>();
  const auto of_torch = torch.add_observer<test::Recorder>();
  trainer.fit();
  torch.fit();
  EXPECT_NEAR(of_dense->steps.front().loss, of_torch->steps.front().loss, 1e-14);
  for (std::size_t i = 0; i < torch.parameters().size(); ++i) {
    EXPECT_TRUE(at::allclose(tensor_of(trainer.parameters()[i]).tensor,
                             torch.parameters()[i].tensor, 1e-13, 1e-15));
  }
}

}  // namespace
}  // namespace rubato
