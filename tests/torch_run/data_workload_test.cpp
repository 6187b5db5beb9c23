// Data of the user's own, on which models of libtorch are trained.

#include <cmath>
#include <string>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <rubato/libtorch/workload.hpp>
#include <rubato/runs/workload.hpp>

#include "runs/config/values/model_choice.hpp"
#include "runs/run/workload/run_data.hpp"
#include "script_models.hpp"
#include "support/error_of.hpp"
#include "support/idx_images.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

class DataWorkload : public testing::Test {
 protected:
  // As libtorch's C++ saves a dictionary of x, y and so on; returns what --data says.
  std::string saved(const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
    c10::Dict<std::string, at::Tensor> all;
    for (const auto& [name, tensor] : tensors) all.insert(name, tensor);
    const std::vector<char> bytes = torch::jit::pickle_save(all);
    const std::string name = fmt::format("data{}.pt", ++files_);
    return "tensors:" + folder_.write(name, {bytes.data(), bytes.size()}).string();
  }
  // A model that forward(), of TorchScript, makes of its parameter `weight`.
  std::string script(const at::Tensor& weight, const std::string& forward) {
    torch::jit::Module net("Net");
    net.register_parameter("weight", weight.clone().requires_grad_(), false);
    net.define("def forward(self, x):\n  return " + forward + "\n");
    const std::string name = fmt::format("net{}.pt", ++files_);
    return "script:" + folder_.write(name, test::file_of(net)).string();
  }
  static std::string error_of(const RunConfiguration& configuration) {
    return test::error_of([&] { return torch_workload(configuration); });
  }
  static Evaluation evaluated(const RunConfiguration& configuration) {
    return evaluate(*torch_workload(configuration), configuration);
  }

  test::TempFolder folder_;
  int files_ = 0;
};

TEST_F(DataWorkload, HasTheGradientThatItsShapeSays) {
  test::write_idx_images(folder_, "images", "train", 40, 20);
  test::write_idx_images(folder_, "images", "t10k", 10, 20);
  const std::string images = "mnist:" + (folder_.path() / "images").string();
  const std::string colours =
      saved({{"x", at::ones({6, 3, 16, 18}, at::kByte)}, {"y", at::arange(6, at::kLong)}});
  const std::string text =
      "text:" + folder_.write("text", "to be or not to be, that is the question").string() +
      ",length=6";
  const std::string table = "csv:" + folder_.write("t.csv", "a,b,y\n1,2,0.5\n3,4,0.25\n").string();
  std::vector<RunConfiguration> runs{{.data = text, .model = "transformer:dim=8,layers=1"},
                                     {.data = table, .model = "mlp:hidden=7"}};
  for (const std::string& data : {images, colours}) {
    for (const char* const model :
         {"mlp", "softmax", "toy-net", "resnet20:width=4", "transformer:dim=8"}) {
      runs.push_back({.data = data, .model = model});
    }
  }
  for (RunConfiguration& run : runs) {
    run.engine = Engine::libtorch;
    EXPECT_EQ(torch_workload(run)->gradient_bytes(),
              known_gradient_bytes(run, shape_of(load_data(run))))
        << run.model.text() << " on " << run.data.text();
  }
}

TEST_F(DataWorkload, GivesScriptsRealNumbersAndTheirTargets) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({300, 3, 2}, at::kDouble);
  const at::Tensor y = at::randn({300, 2}, at::kDouble);
  const at::Tensor weight = at::randn({2, 6}, at::kDouble);
  const double squares = (x.flatten(1).matmul(weight.t()) - y).square().mean().item<double>();
  RunConfiguration run{.data = saved({{"x", x}, {"y", y}, {"x_test", x}, {"y_test", y}}),
                       .model = script(weight, "torch.linear(x.flatten(1), self.weight)"),
                       .metric = "mse"};
  // In float64, without a rounding.
  const Evaluation by_default = evaluated(run);
  EXPECT_NEAR(by_default.loss, squares, 1e-12);
  EXPECT_NEAR(by_default.mse.value(), squares, 1e-12);
  EXPECT_FALSE(by_default.accuracy.has_value());
  run.loss = "bce";
  EXPECT_THAT(test::error_of([&] { return evaluated(run); }),
              HasSubstr("bce takes targets from 0 to 1, and they are from -"));
  run.loss = "nll";
  EXPECT_THAT(error_of(run),
              HasSubstr("are real numbers, and integers would be classes; accepted: mse, bce or "));
  run.loss = {};
  run.label_smoothing = 0.1;
  EXPECT_THAT(error_of(run), HasSubstr("are real numbers; accepted: with data of classes"));
  run.label_smoothing = 0;
  EXPECT_EQ(test::error_of([&] { return predict(*torch_workload(run), run, Prediction::classes); }),
            "the outputs of the model are not scores of classes; accepted: the outputs themselves");
}

TEST_F(DataWorkload, HasProbabilitiesOfClasses) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({300, 3, 2}, at::kDouble);
  const at::Tensor y = at::softmax(at::randn({300, 4}, at::kDouble), 1);
  const at::Tensor weight = at::randn({4, 6}, at::kDouble);
  const at::Tensor logits = x.flatten(1).matmul(weight.t());
  RunConfiguration run{.data = saved({{"x", x}, {"y", y}, {"x_test", x}, {"y_test", y}}),
                       .model = script(weight, "torch.linear(x.flatten(1), self.weight)"),
                       .loss = "cross-entropy",
                       .label_smoothing = 0.1,
                       .metric = "top-k:k=2"};
  EXPECT_THAT(torch_workload(run)->description(),
              HasSubstr("of 3 x 2 with probabilities of 4 classes"));
  const Evaluation found = evaluated(run);
  EXPECT_NEAR(found.loss, at::cross_entropy_loss(logits, y).item<double>(), 1e-12)
      << "without label smoothing, which is of training";
  EXPECT_NEAR(found.accuracy.value(),
              logits.argmax(1).eq(y.argmax(1)).to(at::kDouble).mean().item<double>(), 1e-12);
  EXPECT_GT(found.top_k_accuracy.value(), found.accuracy.value());
  const ArrayCopies classes = predict(*torch_workload(run), run, Prediction::classes);
  EXPECT_EQ(classes.arrays().front().shape, (std::vector<std::int64_t>{300}));
  // Built-in models tell the classes apart.
  run.model = "softmax";
  EXPECT_FALSE(torch_workload(run)->has_real_targets());
  EXPECT_TRUE(evaluated(run).accuracy.has_value());
}

TEST_F(DataWorkload, RefusesProbabilitiesThatAreNone) {
  const at::Tensor x = at::zeros({6, 3});
  const auto error_with = [&](const at::Tensor& y) {
    return error_of({.data = saved({{"x", x}, {"y", y}}), .model = "mlp", .loss = "cross-entropy"});
  };
  at::Tensor y = at::full({6, 4}, 0.25);
  EXPECT_EQ(error_with(y), "no error");
  y[4][1] = 0.5;
  EXPECT_THAT(error_with(y), EndsWith(": the targets at [4] sum to 1.25; accepted: probabilities "
                                      "of the classes, at least 0 and with a sum of 1"));
  y[4][2] = -0.25;
  y[4][0] = 0.5;
  EXPECT_THAT(error_with(y), HasSubstr(": the targets at [4] have -0.25; accepted: "));
  EXPECT_THAT(error_with(at::ones({6, 1})), HasSubstr("are real numbers, and integers would be"));
}

TEST_F(DataWorkload, GivesScriptsTokensAsTheyAre) {
  const at::Tensor x = at::arange(60).remainder(5).view({15, 4});
  const at::Tensor y = at::remainder(x + 1, 5);
  // Says of each token that the one behind it comes next.
  const at::Tensor next = at::eye(5).roll(1, 1) * 10;
  const RunConfiguration run{.data = saved({{"x", x.to(at::kInt)}, {"y", y.to(at::kShort)}}),
                             .validation = HeldOut{.share = 0.4, .seed = 1},
                             .model = script(next, "self.weight[x]"),
                             .metric = "perplexity"};
  const Evaluation evaluation = evaluated(run);
  EXPECT_EQ(evaluation.samples, 6);
  EXPECT_EQ(evaluation.accuracy, 1);
  EXPECT_DOUBLE_EQ(evaluation.perplexity.value(), std::exp(evaluation.loss));
  const ArrayCopies classes = predict(*torch_workload(run), run, Prediction::classes);
  EXPECT_EQ(classes.arrays().front().shape, (std::vector<std::int64_t>{6, 4}));
}

TEST_F(DataWorkload, SaysWhichModelsTakeItsSamples) {
  const at::Tensor x = at::arange(60).remainder(5).view({15, 4});
  RunConfiguration run{.data = saved({{"x", x}, {"y", x.select(1, 0).contiguous()}}),
                       .model = "transformer:dim=8"};
  EXPECT_THAT(error_of(run),
              HasSubstr("are not sequences with a class for each token; accepted: y of"));
  run.data = saved({{"x", x - 1}, {"y", x}});
  EXPECT_THAT(error_of(run), HasSubstr("tokens from 0 to 999999"));
  run.data = saved({{"x", x}, {"y", x}});
  EXPECT_EQ(error_of(run), "no error");
  EXPECT_EQ(test::error_of([&] { return evaluated(run); }),
            fmt::format("there is no test set in {}; accepted: with --validation, or data that "
                        "have one",
                        run.data.text()));
  EXPECT_THAT(
      test::error_of([&] { return predict(*torch_workload(run), run, Prediction::outputs); }),
      HasSubstr("there is no test set; accepted: "));
  run.model = "softmax";
  EXPECT_THAT(error_of(run), HasSubstr("has 4 targets for each; accepted: transformer"));
  run.data = saved({{"x", at::randn({8, 3})}, {"y", at::randn({8, 1})}});
  EXPECT_THAT(error_of(run), HasSubstr("are real numbers; accepted: mlp or script:FILE"));
}

}  // namespace
}  // namespace rubato
