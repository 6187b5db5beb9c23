#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "support/python_models.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

// src/clients/python/rubato/models.py
class ModelTwins : public testing::TestWithParam<std::string_view> {};

// A model whose buffers are not what they are made with.
Model used_model(std::string_view name) {
  at::manual_seed(7);
  Model model = builtin_model(name, {})();
  const at::NoGradGuard no_grad;
  for (int i = 0; i < 3; ++i) {
    static_cast<void>(model.forward(at::randn({8, 1, 28, 28}) * 2 + 1));
  }
  return model;
}

void write_bytes(const std::filesystem::path& file, std::string_view bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

void write_tensor(const std::filesystem::path& file, const at::Tensor& tensor) {
  const std::vector<char> bytes = torch::jit::pickle_save(tensor);
  write_bytes(file, {bytes.data(), bytes.size()});
}

// Strictly: with the names and shapes of the weights, and in their order.
TEST_P(ModelTwins, LoadTheWeightsAndComputeTheSame) {
  if (!test::python_has_torch()) GTEST_SKIP() << "/usr/bin/python3 has no module torch here";
  const test::TempFolder folder;
  const Model model = used_model(GetParam());
  write_bytes(folder.path() / "weights.pt", pickled_weights(model.parameters, model.buffers));
  const at::NoGradGuard no_grad;
  const at::Tensor images = at::randn({16, 1, 28, 28});
  write_tensor(folder.path() / "images.pt", images);
  for (const bool training : {false, true}) {
    model.set_training(training);
    write_tensor(folder.path() / (training ? "training.pt" : "evaluation.pt"),
                 model.forward(images));
  }
  const std::string program =
      test::python_models(RUBATO_PYTHON_MODELS) + "weights = torch.load('weights.pt')\n" +
      fmt::format("model = twin('{}', weights)\n", GetParam()) +
      "tensors = [*model.named_parameters(), *model.named_buffers()]\n"
      "assert list(weights) == [name for name, _ in tensors]\n"
      "model.load_state_dict(weights, strict=True)\n"
      "images = torch.load('images.pt')\n"
      "for training in (False, True):\n"
      "    model.train(training)\n"
      "    expected = torch.load('training.pt' if training else 'evaluation.pt')\n"
      "    found = model(images)\n"
      "    largest = (found - expected).abs().max().item()\n"
      "    assert largest < 1e-4, (training, largest)\n"
      "print('the same')\n";
  EXPECT_EQ(test::run_python(folder, program), "the same\n");
}

INSTANTIATE_TEST_SUITE_P(All, ModelTwins,
                         testing::ValuesIn(std::vector<std::string_view>(
                             builtin_model_names().begin(), builtin_model_names().end())),
                         [](const auto& model) {
                           std::string name(model.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace rubato
