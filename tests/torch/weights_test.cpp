#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <rubato/torch/weights.hpp>

namespace rubato {
namespace {

TEST(PickledWeights, ComeBackByName) {
  // Views of a larger buffer, as the trainer's are.
  const at::Tensor flat = at::arange(1000, at::kFloat);
  const std::vector<NamedTensor> parameters{{"conv.weight", flat.narrow(0, 8, 4).reshape({2, 2})}};
  const std::vector<NamedTensor> buffers{
      {"norm.num_batches_tracked", at::scalar_tensor(7, at::kLong)}};
  const std::string bytes = pickled_weights(parameters, buffers);
  EXPECT_LT(bytes.size(), 2000U) << "the memory behind a view is not written";

  const auto loaded = torch::jit::pickle_load({bytes.begin(), bytes.end()}).toGenericDict();
  ASSERT_EQ(loaded.size(), 2U);
  EXPECT_TRUE(at::equal(loaded.at("conv.weight").toTensor(), parameters[0].tensor));
  EXPECT_TRUE(at::equal(loaded.at("norm.num_batches_tracked").toTensor(), buffers[0].tensor));
}

}  // namespace
}  // namespace rubato
