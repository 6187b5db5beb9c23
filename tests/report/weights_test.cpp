#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <rubato/report/weights.hpp>

namespace rubato {
namespace {

TEST(Sha256, IsThatOfTheBytesInTheirOrder) {
  // "abc" in two tensors: the digest of FIPS 180-2, appendix B.1.
  const std::vector<NamedTensor> abc{{"a", at::tensor({97, 98}, at::kByte)},
                                     {"b", at::tensor({99}, at::kByte)}};
  EXPECT_EQ(sha256_of(abc), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, DoesNotSeeHowATensorLiesInMemory) {
  const at::Tensor values = at::arange(12, at::kFloat).reshape({3, 4});
  const std::vector<NamedTensor> plain{{"w", values}};
  const std::vector<NamedTensor> strided{{"w", values.t().contiguous().t()}};
  EXPECT_EQ(sha256_of(plain), sha256_of(strided));
}

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
