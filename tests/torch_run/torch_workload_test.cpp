// What libtorch's workload makes of a configuration.

#include "libtorch/torch_run/torch_workload.hpp"

#include <functional>
#include <string>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <torch/csrc/jit/api/module.h>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/libtorch/workload.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "libtorch/torch_run/libtorch_workload.hpp"
#include "runs/config/values/model_choice.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

TEST(TorchOptions, AreThoseOfTheConfiguration) {
  struct Case {
    // A line of a configuration.
    std::string line;
    std::function<bool(const TorchOptions&)> is_there;
  };
  const std::vector<Case> cases{
      {"precision = \"bf16\"", [](const auto& o) { return o.precision == Precision::bf16; }},
      {"precision = \"fp16:scale=512,growth=4,backoff=0.25,interval=7,smallest=0.5\"",
       [](const auto& o) {
         return o.precision == Precision::fp16 && o.loss_scale == LossScaleOptions{.initial = 512,
                                                                                   .growth = 4,
                                                                                   .backoff = 0.25,
                                                                                   .interval = 7,
                                                                                   .smallest = 0.5};
       }},
      {"operators = \"max-pool\"",
       [](const auto& o) {
         return o.operators ==
                ReplacedOperators{.convolution = false, .batch_norm = false, .attention = false};
       }},
      {"init = \"msra:fan=out\"",
       [](const auto& o) {
         return o.initializer ==
                InitializerOptions{.kind = InitializerKind::msra, .fan = FanMode::out};
       }},
      {"augment = \"shift:pixels=2\"", [](const auto& o) { return static_cast<bool>(o.augment); }}};
  const auto options_of = [](const std::string& text) {
    return torch_options(parse_configuration(text, "test"));
  };
  for (const auto& [line, is_there] : cases) {
    SCOPED_TRACE(line);
    EXPECT_FALSE(is_there(options_of(""))) << "the case shows nothing";
    EXPECT_TRUE(is_there(options_of(line)));
  }
}

TEST(TorchWorkload, SaysWhichModelsItComputes) {
  EXPECT_EQ(error_of([] { return torch_workload({.model = "quadratic"}); }),
            "libtorch does not compute the model quadratic; accepted: --engine eigen");
}

// What a simulation knows of a model without it.
TEST(TorchWorkload, HasGradientsOfTheSizeThatTheTableOfModelsSays) {
  for (const ModelEntry& model : models()) {
    // What is in a file is known only when it is read.
    if (!model.in_libtorch || model.parameters == nullptr) continue;
    const auto workload = torch_workload({.model = std::string(model.name)});
    EXPECT_EQ(workload->gradient_bytes(), known_gradient_bytes({.model = std::string(model.name)}))
        << model.name;
  }
}

TEST(TorchWorkload, TakesDataWithoutTargets) {
  torch::jit::Module net("Net");
  net.register_parameter("weight", at::ones({2, 2}).requires_grad_(), false);
  net.register_attribute("training", c10::BoolType::get(), true);
  net.define("def forward(self, x):\n    return torch.linear(x, self.weight)\n");
  const auto workload =
      torch_workload({.data = std::string(kOwn), .model = std::string(kOwn)},
                     {.model = net,
                      .train = make_dataset(Tensors{at::ones({8, 2})}, Tensors()),
                      .loss = Loss([](const Tensors& outputs, const Tensors& /*targets*/) {
                        return outputs.front().square().mean();
                      })});
  EXPECT_EQ(workload->samples(), 8);
  EXPECT_FALSE(workload->has_real_targets());
}

TEST(TorchWorkload, TakesNoRandomNumbersForInitialWeights) {
  const test::TempFolder folder;
  const Model model = builtin_model("softmax", {})();
  const auto file = folder.write("weights.pt", pickled_weights(model.parameters, model.buffers));
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const at::Tensor before = generator.get_state();
  static_cast<void>(torch_workload({.model = "softmax", .weights = file}));
  EXPECT_TRUE(at::equal(generator.get_state(), before));
}

TEST(PortableKernels, AreOneSetForEachLibrary) {
  const EngineFacts::Facts wanted{{"OpenBLAS", "Haswell"}, {"ATen", "AVX2"}, {"oneDNN", "avx2"}};
  EXPECT_EQ(error_of([&] { require_portable_kernels(wanted); }), "no error");
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EngineFacts::Facts other = wanted;
    other[i].second = "another";
    EXPECT_EQ(error_of([&] { require_portable_kernels(other); }),
              "--kernels portable: these libraries compute with " + kernels_text(other) +
                  ", not with " + kernels_text(wanted) + "; accepted here: --kernels native");
  }
}

}  // namespace
}  // namespace rubato
