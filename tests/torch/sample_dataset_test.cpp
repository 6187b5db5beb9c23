// Samples as tensors: made once, or for each minibatch.

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <typeindex>
#include <typeinfo>
#include <vector>

#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include "libtorch/torch/sample_tensors.hpp"
#include "loop/data/images/digits.hpp"

namespace rubato {
namespace {

constexpr double kNoRoom = 0;
constexpr double kRoom = std::numeric_limits<double>::infinity();

DataSets held_out_digits() {
  DataSets data{
      .train = sample_set_of(render_digits(40, 1)), .inputs = InputKind::pixels, .classes = 10};
  hold_out(data, 0.25, 3);
  normalise(data);
  return data;
}

TEST(SampleDataset, IsTheSameBitsMadeOnceAndForEachMinibatch) {
  const DataSets data = held_out_digits();
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const SampleTensors tensors{.input_shape = {1, 28, 28}, .input_type = type};
    const auto once = make_dataset(data, data.train, tensors, kRoom);
    const auto each = make_dataset(data, data.train, tensors, kNoRoom);
    ASSERT_EQ(once->size(), 30);
    ASSERT_EQ(each->size(), 30);
    const std::vector<std::int64_t> samples{29, 0, 7, 7};
    const Batch a = once->batch(samples);
    const Batch b = each->batch(samples);
    EXPECT_EQ(a.inputs[0].scalar_type(), type);
    EXPECT_EQ(b.inputs[0].sizes(), (std::vector<std::int64_t>{4, 1, 28, 28}));
    EXPECT_TRUE(at::equal(a.inputs[0], b.inputs[0]));
    EXPECT_TRUE(at::equal(a.targets[0], b.targets[0]));
    EXPECT_TRUE(at::equal(once->range(3, 9).inputs[0], each->range(3, 9).inputs[0]));
    EXPECT_EQ(once->fingerprint(), each->fingerprint());
    EXPECT_EQ(once->sample_bytes(), each->sample_bytes());
    // Any samples with the smallest and the largest class will do.
    for (const auto& set : {once, each}) {
      const at::Tensor classes = set->batch(set->extremes()).targets[0];
      const at::Tensor all = set->range(0, 30).targets[0];
      EXPECT_EQ(classes.min().item<std::int64_t>(), all.min().item<std::int64_t>());
      EXPECT_EQ(classes.max().item<std::int64_t>(), all.max().item<std::int64_t>());
    }
  }
}

// As to_tensors() has them, which programs use.
TEST(SampleDataset, HasTheValuesOfImagesAsTensors) {
  const ImageSet images = render_digits(20, 1);
  const TensorDataset expected = to_tensors(images, pixel_statistics(images));
  DataSets data{.train = sample_set_of(images), .inputs = InputKind::pixels, .classes = 10};
  normalise(data);
  const auto set = make_dataset(data, data.train, {.input_shape = {1, 28, 28}}, kNoRoom);
  const Batch all = set->range(0, 20);
  EXPECT_TRUE(at::equal(all.inputs[0], expected.inputs));
  EXPECT_TRUE(at::equal(all.targets[0], expected.targets));
}

TEST(SampleDataset, GivesTokensAsWholeNumbersAndRealTargetsAsNumbers) {
  const std::vector<std::int32_t> numbers{3, 1, 4, 1, 5, 9};
  const auto owner = std::make_shared<std::vector<std::int32_t>>(numbers);
  const SampleRows rows(ElementType::i32, {3}, 12,
                        {{.begin = reinterpret_cast<const char*>(owner->data()), .count = 2}},
                        owner);
  DataSets data{.train = {.inputs = rows, .targets = rows}, .inputs = InputKind::tokens};
  data.classes = 10;
  for (const double room : {kNoRoom, kRoom}) {
    const SampleTensors tensors{.input_shape = {3}, .input_type = at::kLong};
    const Batch classes = make_dataset(data, data.train, tensors, room)->range(0, 2);
    EXPECT_TRUE(
        at::equal(classes.inputs[0], at::tensor({3, 1, 4, 1, 5, 9}, at::kLong).view({2, 3})));
    EXPECT_TRUE(at::equal(classes.targets[0], classes.inputs[0]));
    DataSets real = data;
    real.classes = 0;
    const Batch targets = make_dataset(real, real.train, tensors, room)->range(1, 1);
    EXPECT_TRUE(at::equal(targets.targets[0], at::tensor({1, 5, 9}, at::kFloat).view({1, 3})));
    EXPECT_TRUE(make_dataset(real, real.train, tensors, room)->extremes().empty());
  }
}

TEST(SampleDataset, IsMadeOnceWhereInputsAndTargetsFit) {
  const auto owner = std::make_shared<std::vector<std::int32_t>>(6, 1);
  const SampleRows rows(ElementType::i32, {3}, 12,
                        {{.begin = reinterpret_cast<const char*>(owner->data()), .count = 2}},
                        owner);
  DataSets data{.train = {.inputs = rows, .targets = rows}, .inputs = InputKind::tokens};
  data.classes = 10;
  const auto kind_with = [&](double room) {
    const auto made =
        make_dataset(data, data.train, {.input_shape = {3}, .input_type = at::kLong}, room);
    const Dataset& dataset = *made;
    return std::type_index(typeid(dataset));
  };
  // Six tokens and as many targets of eight bytes each.
  EXPECT_EQ(kind_with(2 * 48), kind_with(kRoom));
  EXPECT_EQ(kind_with(2 * 48 - 1), kind_with(kNoRoom));
  EXPECT_NE(kind_with(kRoom), kind_with(kNoRoom));
}

}  // namespace
}  // namespace rubato
