#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <rubato/loop/eigen.hpp>

#include "eigen/support.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::random_classes;
using test::random_targets;

std::vector<std::string> names_of(const Objective& network) {
  std::vector<std::string> names;
  for (const NamedArray& array : network.parameters()) {
    names.push_back(fmt::format("{} {}", array.name, fmt::join(array.shape, "x")));
  }
  return names;
}

TEST(DenseNetwork, HasTheNamesOfTheBuiltInModels) {
  EXPECT_THAT(names_of(*softmax_regression(random_classes<float>(10, 784, 10))),
              ElementsAre("linear.weight 10x784", "linear.bias 10"));
  EXPECT_THAT(names_of(*least_squares(random_targets<double>(10, 5, 2))),
              ElementsAre("linear.weight 2x5", "linear.bias 2"));
  EXPECT_THAT(
      names_of(*multi_layer_perceptron(random_classes<float>(10, 784, 10), {.hidden = {128, 64}})),
      ElementsAre("linear1.weight 128x784", "linear1.bias 128", "linear2.weight 64x128",
                  "linear2.bias 64", "linear3.weight 10x64", "linear3.bias 10"));
}

template <class T>
void expect_aligned(ObjectiveOf<T>& network) {
  const std::span<T> flat = network.flat_parameters();
  std::size_t begin = 0;
  ASSERT_EQ(network.trained().size(), network.parameters().size());
  for (const TrainedArray& trained : network.trained()) {
    EXPECT_EQ(trained.array.data, flat.data() + begin) << trained.array.name;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(trained.array.data) % 64, 0U);
    ASSERT_GE(trained.end, begin + trained.array.size());
    for (std::size_t i = begin + trained.array.size(); i < trained.end; ++i) {
      EXPECT_EQ(flat[i], 0) << "padding";
    }
    begin = trained.end;
  }
  EXPECT_EQ(begin, flat.size());
}

TEST(DenseNetwork, LaysParametersOutAtMultiplesOf64Bytes) {
  expect_aligned(*multi_layer_perceptron(random_classes<float>(4, 3, 5), {.hidden = {7, 33}}));
  expect_aligned(*multi_layer_perceptron(random_classes<double>(4, 3, 5), {.hidden = {7, 33}}));
  expect_aligned(*least_squares(random_targets<double>(4, 3, 1)));
}

TEST(DenseNetwork, BeginsWithValuesOfItsSeed) {
  const auto values = [](std::uint64_t seed) {
    const auto network = softmax_regression(random_classes<float>(4, 3, 5), {.seed = seed});
    const auto flat = network->flat_parameters();
    return std::vector<float>(flat.begin(), flat.end());
  };
  EXPECT_EQ(values(1), values(1));
  EXPECT_NE(values(1), values(2));
}

TEST(DenseNetwork, IsOfItsData) {
  const auto train = random_classes<float>(10, 3, 4);
  const auto test = random_classes<float>(5, 3, 4, 2);
  const auto network = softmax_regression(train, {.test = test});
  EXPECT_EQ(network->type(), ElementType::f32);
  EXPECT_EQ(network->samples(), 10);
  EXPECT_TRUE(network->has_test());
  EXPECT_EQ(network->fingerprint(), train.fingerprint());
  EXPECT_EQ(network->test_fingerprint(), test.fingerprint());
  EXPECT_FALSE(softmax_regression(train)->has_test());
  EXPECT_EQ(least_squares(random_targets<double>(10, 3, 4))->type(), ElementType::f64);
}

TEST(DenseNetwork, IsBoundToWhatItComputes) {
  const auto values = [](Activation activation, const DenseDataset<float>& train) {
    const auto network = multi_layer_perceptron(train, {.hidden = {2}, .activation = activation});
    std::vector<std::string> texts;
    for (const BoundValue& value : network->bound_values()) {
      texts.push_back(std::string(value.name) + " = " + value.value);
    }
    return texts;
  };
  const auto relu = values(Activation::relu, random_classes<float>(10, 3, 4));
  EXPECT_EQ(relu, (std::vector<std::string>{"loss = cross entropy", "activation = relu"}));
  EXPECT_NE(relu, values(Activation::tanh, random_classes<float>(10, 3, 4)));
  EXPECT_NE(relu, values(Activation::relu, random_targets<float>(10, 3, 4)));
}

TEST(DenseNetwork, SaysWhatDoesNotFit) {
  const auto classes = random_classes<float>(10, 3, 4);
  const auto targets = random_targets<float>(10, 3, 4);
  using Data = DenseDataset<float>;
  using Options = DenseNetworkOptions<float>;
  const auto softmax = [](const Data& data, const Options& options) {
    return error_of([&] { return softmax_regression(data, options); });
  };
  const auto squares = [](const Data& data, const Options& options) {
    return error_of([&] { return least_squares(data, options); });
  };
  const auto perceptron = [&](const std::vector<std::int64_t>& hidden) {
    return error_of([&] { return multi_layer_perceptron(classes, {.hidden = hidden}); });
  };
  EXPECT_THAT(softmax(targets, {}),
              HasSubstr("softmax regression on real targets; accepted: data with classes"));
  EXPECT_THAT(squares(classes, {}),
              HasSubstr("least squares on classes; accepted: data with real targets"));
  EXPECT_THAT(softmax(classes, {.hidden = {8, 9}}),
              HasSubstr("softmax regression with hidden layers of 8, 9; accepted: none"));
  EXPECT_THAT(squares(targets, {.hidden = {8}}),
              HasSubstr("least squares with hidden layers of 8"));
  EXPECT_THAT(perceptron({}), HasSubstr("without hidden layers; accepted: at least one width"));
  EXPECT_THAT(perceptron({8, 0}), HasSubstr("a hidden layer of width 0; accepted: at least 1"));
  EXPECT_THAT(softmax(classes, {.test = random_classes<float>(5, 2, 4)}),
              HasSubstr("test data: 2 features and 4 classes; accepted: 3 features and 4 classes, "
                        "as in the training data"));
  EXPECT_THAT(softmax(classes, {.test = random_classes<float>(5, 3, 5)}),
              HasSubstr("3 features and 5 classes"));
  EXPECT_THAT(softmax(classes, {.test = targets}),
              HasSubstr("test data: 3 features and 4 real targets"));
}

}  // namespace
}  // namespace rubato
