#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <rubato/base/error.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"

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

// The checksum of every member of the file is compared.
TEST(PickledWeights, AreRefusedWithABitThatChanged) {
  const std::vector<NamedTensor> parameters{{"weight", at::full({4}, 8.5, at::kFloat)}};
  const std::string good = pickled_weights(parameters, {});
  EXPECT_TRUE(at::equal(read_weights(good, "f").front().tensor, parameters.front().tensor));
  const float value = 8.5F;
  std::string numbers(sizeof value, '\0');
  std::memcpy(numbers.data(), &value, sizeof value);
  std::string bad = good;
  bad[bad.find(numbers) + 1] ^= 1;
  EXPECT_THAT(error_of([&] { return read_weights(bad, "f"); }),
              HasSubstr("fails its checksum; accepted: a state_dict"));
}

// As Python's torch.save() writes them: torch.load() of PyTorch 2.6 takes the tags of types, which
// pickle_save() writes, for code.
TEST(PickledWeights, AreTensorsOfAnyLayoutWithoutTagsOfTypes) {
  const std::vector<NamedTensor> parameters{{"weight", at::arange(6, at::kFloat).view({2, 3})},
                                            {"transposed", at::arange(6).view({2, 3}).t()},
                                            {"empty", at::zeros({0, 3})}};
  const std::vector<NamedTensor> buffers{{"flag", at::ones({}, at::kBool)}};
  const std::string bytes = pickled_weights(parameters, buffers);
  EXPECT_THAT(bytes, Not(HasSubstr("restore_type_tag")));
  const auto loaded = torch::jit::pickle_load({bytes.begin(), bytes.end()}).toGenericDict();
  ASSERT_EQ(loaded.size(), 4U);
  for (const auto& tensors : {parameters, buffers}) {
    for (const auto& [name, tensor] : tensors) {
      EXPECT_TRUE(at::equal(loaded.at(name).toTensor(), tensor)) << name;
    }
  }
}

TEST(PickledWeights, AreGivenToASinkWhereTheyLieAndPassItsErrorsOn) {
  const std::vector<NamedTensor> parameters{{"weight", at::zeros({100'000})}};
  std::vector<const void*> pieces;
  stream_pickled_weights(parameters, {},
                         [&](std::string_view bytes) { pieces.push_back(bytes.data()); });
  EXPECT_THAT(pieces, Contains(parameters[0].tensor.data_ptr())) << "not a copy of it";
  // libtorch's writer would end the process.
  EXPECT_EQ(error_of([&] {
              stream_pickled_weights(parameters, {},
                                     [](std::string_view) { throw Error("a full disk"); });
            }),
            "a full disk");
}

}  // namespace
}  // namespace rubato
