#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/libtorch/model.hpp>

#include "libtorch/model/dispatch_scopes.hpp"
#include "libtorch/model/networks.hpp"
#include "libtorch/operators/operators.hpp"
#include "model/names.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::names;
using Shape = std::vector<std::int64_t>;

std::int64_t parameter_count(const Model& model) {
  std::int64_t count = 0;
  for (const NamedTensor& parameter : model.parameters) count += parameter.tensor.numel();
  return count;
}

std::map<std::string, at::Tensor> by_name(const Model& model) {
  std::map<std::string, at::Tensor> tensors;
  for (const NamedTensor& tensor : model.parameters) tensors[tensor.name] = tensor.tensor;
  for (const NamedTensor& tensor : model.buffers) tensors[tensor.name] = tensor.tensor;
  return tensors;
}

at::Tensor images(std::int64_t count, const ImageShape& shape) {
  at::manual_seed(1);
  return at::randn({count, shape.channels, shape.height, shape.width});
}

std::string error_of_model(std::string_view name, const ImageShape& shape) {
  return error_of([&] { return builtin_model(name, shape); });
}

TEST(BuiltinModels, AreThoseOfTheTable) {
  std::vector<std::string_view> expected;
  for (const ModelEntry& model : models()) {
    if (model.in_libtorch && model.parameters != nullptr) expected.push_back(model.name);
  }
  EXPECT_THAT(builtin_model_names(), testing::ElementsAreArray(expected));
}

TEST(RegressionModel, IsThePerceptronWithoutTheSoftmax) {
  const at::NoGradGuard no_grad;
  const Model numbers = regression_model("mlp:hidden=6", 12, 3)();
  const Model classes = builtin_model("mlp:hidden=6", {.height = 3, .width = 4, .classes = 3})();
  EXPECT_EQ(names(numbers.parameters), names(classes.parameters));
  for (std::size_t i = 0; i < numbers.parameters.size(); ++i) {
    numbers.parameters[i].tensor.copy_(classes.parameters[i].tensor);
  }
  const at::Tensor x = images(5, {.height = 3, .width = 4});
  const at::Tensor output = numbers.forward(x);
  EXPECT_TRUE(at::equal(output.log_softmax(1), classes.forward(x)));
  EXPECT_FALSE(at::equal(output, classes.forward(x)));
  EXPECT_EQ(
      error_of([] { return regression_model("softmax", 12, 3); }),
      "model softmax tells classes apart, the data have real targets; accepted for these: mlp");
  EXPECT_THAT(error_of([] { return regression_model("mpl", 12, 3); }),
              HasSubstr("did you mean 'mlp'?"));
}

TEST(BuiltinModels, HaveAsManyParametersAsTheTableSays) {
  const DataShape colour{.channels = 3, .height = 17, .width = 20, .outputs = 7};
  const DataShape numbers{.height = 1, .width = 12, .outputs = 3, .real_targets = true};
  const DataShape tokens{.height = 1, .width = 9, .outputs = 5, .vocabulary = 11};
  const std::vector<std::tuple<const char*, DataShape, std::int64_t>> cases{
      // 21,840 in PyTorch's classic network, and two batch normalisations of 2 x 10 and 2 x 20.
      {"mnist-cnn", {}, 21'900},
      {"mlp", {}, (128 * 784 + 128) + (64 * 128 + 64) + (10 * 64 + 10)},
      {"mlp:hidden=6", numbers, (6 * 12 + 6) + (3 * 6 + 3)},
      {"softmax", {}, 10 * 784 + 10},
      {"toy-net", {}, 5'752'714},
      {"toy-net", colour, 2'082'311},
      // 0.27 million parameters (He et al. 2016, table 6), with shortcuts of option B.
      {"resnet20", {.channels = 3}, 272'474},
      {"resnet20:width=3", colour, 9'952},
      {"transformer", {}, 71'370},
      {"transformer:layers=1,heads=2,dim=6,hidden=5", colour, 792},
      {"transformer:layers=3", tokens, 102'149}};
  for (const auto& [text, data, expected] : cases) {
    SCOPED_TRACE(text);
    const ParsedModel model = parse_model(text);
    EXPECT_EQ(model.entry.parameters(model.options, data), expected);
    EXPECT_EQ(parameter_count(builtin_model_for(text, data)()), expected);
  }
}

TEST(BuiltinModels, MapImagesToLogProbabilities) {
  for (const std::string_view name : builtin_model_names()) {
    const Model model = builtin_model(name, {})();
    const at::Tensor output = model.forward(images(5, {}));
    EXPECT_EQ(output.sizes(), (Shape{5, 10})) << name;
    EXPECT_TRUE(at::allclose(output.exp().sum(1), at::ones({5}))) << name;
  }
}

TEST(BuiltinModels, TakeTheShapeOfTheData) {
  const ImageShape colour{.channels = 3, .height = 17, .width = 16, .classes = 100};
  for (const std::string_view name :
       {"mlp:hidden=5/4/3,activation=tanh", "softmax", "toy-net", "resnet20:width=3",
        "transformer:layers=1,heads=2,dim=6,hidden=5,dropout=0.5"}) {
    EXPECT_EQ(builtin_model(name, colour)().forward(images(4, colour)).sizes(), (Shape{4, 100}))
        << name;
  }
}

TEST(MnistCnn, NamesItsTensorsInTheOrderOfItsLayers) {
  const Model model = builtin_model("mnist-cnn", {})();
  EXPECT_THAT(names(model.parameters),
              ElementsAre("conv1.weight", "conv1.bias", "bn1.weight", "bn1.bias", "conv2.weight",
                          "conv2.bias", "bn2.weight", "bn2.bias", "fc1.weight", "fc1.bias",
                          "fc2.weight", "fc2.bias"));
  EXPECT_THAT(names(model.buffers),
              ElementsAre("bn1.running_mean", "bn1.running_var", "bn1.num_batches_tracked",
                          "bn2.running_mean", "bn2.running_var", "bn2.num_batches_tracked"));
}

// The network of the original, layer by layer: convolution, pooling, relu, batch normalisation.
TEST(MnistCnn, ComputesTheOriginalsNetwork) {
  const at::NoGradGuard no_grad;
  const Model model = builtin_model("mnist-cnn", {})();
  auto t = by_name(model);
  // Factors and shifts other than 1 and 0, so that the place of the normalisation shows.
  for (const char* norm : {"bn1", "bn2"}) {
    const std::string name = norm;
    t[name + ".weight"].normal_(1.0, 0.5);
    t[name + ".bias"].normal_(0.0, 0.5);
    t[name + ".running_mean"].normal_(0.0, 0.5);
    t[name + ".running_var"].uniform_(0.5, 2.0);
  }
  const auto reference = [&](at::Tensor x, bool training) {
    const auto block = [&](const at::Tensor& in, const std::string& conv, const std::string& norm) {
      const at::Tensor convolved = at::conv2d(in, t[conv + ".weight"], t[conv + ".bias"]);
      return at::batch_norm(at::relu(at::max_pool2d(convolved, {2, 2})), t[norm + ".weight"],
                            t[norm + ".bias"], t[norm + ".running_mean"].clone(),
                            t[norm + ".running_var"].clone(), training, 0.1, 1e-5, false);
    };
    x = block(block(x, "conv1", "bn1"), "conv2", "bn2").reshape({-1, 320});
    x = at::relu(at::linear(x, t["fc1.weight"], t["fc1.bias"]));
    return at::log_softmax(at::linear(x, t["fc2.weight"], t["fc2.bias"]), 1);
  };
  const at::Tensor x = images(7, {});
  for (const bool training : {false, true}) {
    const at::Tensor expected = reference(x, training);
    model.set_training(training);
    EXPECT_TRUE(at::allclose(model.forward(x), expected, 1e-4, 1e-4)) << "training " << training;
  }
}

TEST(BuiltinModels, SuggestTheNearestName) {
  EXPECT_EQ(error_of_model("mnist-cn", {}),
            "unknown model 'mnist-cn'; did you mean 'mnist-cnn'? accepted: mnist-cnn, mlp, "
            "softmax, toy-net, resnet20, transformer");
  EXPECT_EQ(error_of_model("alexnet", {}),
            "unknown model 'alexnet'; accepted: mnist-cnn, mlp, softmax, toy-net, resnet20, "
            "transformer");
  EXPECT_EQ(error_of_model("softmax:hidden=3", {}), "softmax takes no arguments, but has 'hidden'");
}

TEST(ToyNet, RefusesImagesThatItsConvolutionsUseUp) {
  EXPECT_EQ(error_of_model("toy-net", {.height = 16, .width = 16}), "no error");
  const auto refused = [](std::int64_t height, std::int64_t width) {
    return fmt::format(
        "model toy-net takes images of at least 16 x 16, the data has 1 x {} x {} in 10 classes; "
        "accepted for these: mlp, softmax, resnet20, transformer",
        height, width);
  };
  EXPECT_EQ(error_of_model("toy-net", {.width = 15}), refused(28, 15));
  EXPECT_EQ(error_of_model("toy-net", {.height = 15}), refused(15, 28));
}

TEST(MnistCnn, RefusesImagesOfAnotherShape) {
  for (const ImageShape& shape : {ImageShape{.channels = 3}, ImageShape{.height = 32},
                                  ImageShape{.width = 27}, ImageShape{.classes = 47}}) {
    EXPECT_THAT(error_of_model("mnist-cnn", shape),
                AllOf(HasSubstr("takes images of 1 x 28 x 28 in 10 classes"),
                      HasSubstr(std::to_string(shape.channels) + " x " +
                                std::to_string(shape.height) + " x " + std::to_string(shape.width) +
                                " in " + std::to_string(shape.classes)),
                      HasSubstr("accepted for these: mlp, softmax")));
  }
}

// With the same draws: dropout of half of all values would show any other.
TEST(Transformer, IsTheSameWithRubatosAttention) {
  const DataShape rows{};
  const DataShape tokens{.height = 1, .width = 9, .outputs = 5, .vocabulary = 11};
  for (const DataShape& data : {rows, tokens}) {
    at::manual_seed(5);
    const Model model = builtin_model_for("transformer:dropout=0.5", data)();
    model.set_training(true);
    const at::Tensor inputs =
        data.vocabulary > 0 ? at::randint(11, {6, 9}, at::kLong) : images(6, {});
    // The output and the gradients of all parameters.
    const auto computed = [&](const ReplacedOperators& operators) {
      const OperatorScope scope(operators);
      RandomStream stream;
      const RandomStream::Scope draws = stream.begin({.seed = 3});
      const at::Tensor output = model.forward(inputs);
      for (const NamedTensor& parameter : model.parameters)
        parameter.tensor.mutable_grad() = at::Tensor();
      output.backward(at::ones_like(output) * output.detach());
      std::vector<at::Tensor> all{output.detach()};
      for (const NamedTensor& parameter : model.parameters) all.push_back(parameter.tensor.grad());
      return all;
    };
    const std::vector<at::Tensor> ours = computed({});
    const std::vector<at::Tensor> theirs = computed(ReplacedOperators::none());
    EXPECT_FALSE(at::equal(ours.front(), theirs.front()));
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const double size = std::max(theirs[i].abs().max().item<double>(), 1.0);
      EXPECT_LT((ours[i] - theirs[i]).abs().max().item<double>(), 2e-5 * size) << i;
    }
  }
}

}  // namespace
}  // namespace rubato
