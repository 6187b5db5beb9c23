#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <rubato/model/builtin_models.hpp>
#include <rubato/torch/weights.hpp>

#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using testing::HasSubstr;

constexpr std::string_view kFence = "```python\n";
constexpr const char* kPython = "/usr/bin/python3";

// The first block of Python behind `from`.
std::string python_behind(const std::string& page, std::size_t from) {
  const std::size_t fence = page.find(kFence, from);
  if (fence == std::string::npos) return "";
  const std::size_t begin = fence + kFence.size();
  return page.substr(begin, page.find("```", begin) - begin);
}

// docs/models.md
class ModelTwins : public testing::TestWithParam<std::string_view> {
 protected:
  // What the page says of a model, up to the next heading.
  static std::string section_of(std::string_view model) {
    const std::string heading = fmt::format("\n## `{}`\n", model);
    const std::size_t begin = page().find(heading);
    if (begin == std::string::npos) return "";
    return page().substr(begin, page().find("\n## ", begin + heading.size()) - begin);
  }
  static const std::string& page() {
    static const std::string text = test::read_file(RUBATO_MODELS_MD);
    return text;
  }
};

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

bool python_has_torch() {
  static const bool has =
      std::system((std::string(kPython) + " -c 'import torch' >/dev/null 2>&1").c_str()) == 0;
  return has;
}

TEST_P(ModelTwins, HaveTheNamesAndShapesOfTheTable) {
  const Model model = builtin_model(GetParam(), {})();
  std::vector<std::string> rows;
  for (const auto* tensors : {&model.parameters, &model.buffers}) {
    for (const NamedTensor& named : *tensors) {
      std::string shape = fmt::format("{}", fmt::join(named.tensor.sizes(), " x "));
      rows.push_back(fmt::format("| `{}` |{} |", named.name, shape.empty() ? "" : " " + shape));
    }
  }
  std::vector<std::string> in_page;
  const std::string section = section_of(GetParam());
  const std::regex row(R"(\| `[a-z0-9_.]+` \|[^\n]*\|)");
  for (std::sregex_iterator it(section.begin(), section.end(), row), end; it != end; ++it) {
    in_page.push_back(it->str());
  }
  EXPECT_EQ(in_page, rows);
}

TEST_P(ModelTwins, LoadTheWeightsStrictlyAndComputeTheSame) {
  if (!python_has_torch()) GTEST_SKIP() << kPython << " has no module torch here";
  const std::string twin = python_behind(page(), 0) + python_behind(section_of(GetParam()), 0);
  std::smatch name;
  ASSERT_TRUE(std::regex_search(twin, name, std::regex("class (\\w+)"))) << twin;
  // How the page says that the twin of MNIST's shape is made.
  std::smatch call;
  const bool sized = std::regex_search(twin, call, std::regex("For MNIST (\\w+\\([0-9, ]+\\))"));

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
  folder.write("compare.py",
               twin + fmt::format("model = {}\n", sized ? call[1].str() : name[1].str() + "()") +
                   "model.load_state_dict(torch.load('weights.pt'), strict=True)\n"
                   "images = torch.load('images.pt')\n"
                   "for training in (False, True):\n"
                   "    model.train(training)\n"
                   "    expected = torch.load('training.pt' if training else 'evaluation.pt')\n"
                   "    found = model(images)\n"
                   "    largest = (found - expected).abs().max().item()\n"
                   "    assert largest < 1e-4, (training, largest)\n"
                   "print('the same')\n");
  const std::string command =
      fmt::format("cd '{}' && {} compare.py >out 2>&1", folder.path().string(), kPython);
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(test::read_file(folder.path() / "out"), "the same\n");
}

INSTANTIATE_TEST_SUITE_P(All, ModelTwins,
                         testing::ValuesIn(std::vector<std::string_view>(
                             builtin_model_names().begin(), builtin_model_names().end())),
                         [](const auto& model) {
                           std::string name(model.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// PyTorch, which rubato is compared with, trains the network of the page.
TEST_F(ModelTwins, AreThoseOfTheBenchmark) {
  const std::string twin = python_behind(section_of("mnist-cnn"), 0);
  ASSERT_FALSE(twin.empty());
  EXPECT_THAT(test::read_file(RUBATO_PYTORCH_NETWORKS), HasSubstr(twin));
}

}  // namespace
}  // namespace rubato
