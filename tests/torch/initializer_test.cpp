#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <rubato/libtorch/module.hpp>

#include "libtorch/model/networks.hpp"
#include "small_run.hpp"
#include "support.hpp"

namespace rubato {
namespace {

using test::Net;
using test::options_of;
using test::trainer_on;

struct NormedNet : torch::nn::Module {
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(300, 200));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(200));
  at::Tensor forward(const at::Tensor& x) { return norm(linear(x)); }
};

TEST(Initializers, FillTheWeightsAsTheyAreDefined) {
  const auto weight_of = [](const char* spec) {
    at::manual_seed(5);
    const Model model = make_model(std::make_shared<NormedNet>());
    initialize(model, parse_initializer(spec));
    EXPECT_EQ(model.parameters[1].tensor.abs().max().item<float>(), 0) << "bias";
    EXPECT_EQ(model.parameters[2].tensor.min().item<float>(), 1) << "scale of the norm";
    return model.parameters[0].tensor.detach();
  };
  const auto deviation = [](const at::Tensor& weight) { return weight.std().item<double>(); };
  const auto bound = [](const at::Tensor& weight) { return weight.abs().max().item<double>(); };
  // 300 inputs, 200 outputs.
  EXPECT_NEAR(bound(weight_of("xavier")), std::sqrt(6.0 / 500), 1e-4);
  EXPECT_NEAR(bound(weight_of("xavier:gain=2")), 2 * std::sqrt(6.0 / 500), 2e-4);
  EXPECT_NEAR(deviation(weight_of("xavier:distribution=normal")), std::sqrt(2.0 / 500), 1e-3);
  EXPECT_NEAR(bound(weight_of("msra")), std::sqrt(6.0 / 300), 1e-4);
  EXPECT_NEAR(bound(weight_of("msra:slope=1,fan=out")), std::sqrt(3.0 / 200), 1e-4);
  EXPECT_NEAR(deviation(weight_of("msra:distribution=normal")), std::sqrt(2.0 / 300), 1e-3);
  EXPECT_NEAR(deviation(weight_of("xavier:distribution=normal,gain=3")), 3 * std::sqrt(2.0 / 500),
              3e-3);
  EXPECT_NEAR(deviation(weight_of("msra:distribution=normal,slope=1,fan=out")),
              std::sqrt(1.0 / 200), 1e-3);
  EXPECT_NEAR(deviation(weight_of("normal:mean=1,deviation=0.5")), 0.5, 0.01);
  EXPECT_NEAR(weight_of("normal:mean=1,deviation=0.5").mean().item<double>(), 1, 0.01);
  EXPECT_NEAR(weight_of("uniform:low=2,high=3").min().item<double>(), 2, 1e-3);
  EXPECT_NEAR(weight_of("uniform:low=2,high=3").max().item<double>(), 3, 1e-3);
  EXPECT_EQ(weight_of("one").min().item<float>(), 1);
  EXPECT_EQ(bound(weight_of("zero")), 0);
  const at::Tensor orthogonal = weight_of("orthogonal:gain=2").to(at::kDouble);
  EXPECT_TRUE(
      at::allclose(orthogonal.matmul(orthogonal.t()), 4 * at::eye(200, at::kDouble), 1e-4, 1e-4));
}

TEST(Initializers, ChangeNothingByDefaultAndFollowTheSeed) {
  const auto initial = [](const char* spec, std::uint64_t seed) {
    test::AllOptions options = options_of();
    options.torch.initializer = parse_initializer(spec);
    options.seed = seed;
    return test::state_bytes(trainer_on(Trace::constant(16), options));
  };
  at::manual_seed(7);
  std::string plain;
  for (const at::Tensor& tensor : Net().parameters()) plain += test::bytes_of(tensor.detach());
  EXPECT_TRUE(initial("default", 7) == plain);
  EXPECT_FALSE(initial("msra", 7) == plain);
  EXPECT_TRUE(initial("msra", 7) == initial("msra", 7));
  EXPECT_FALSE(initial("msra", 7) == initial("msra", 8));
}

}  // namespace
}  // namespace rubato
