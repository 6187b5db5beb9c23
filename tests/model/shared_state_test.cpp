#include "libtorch/model/shared_state.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include "model/names.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::names;

std::int64_t bytes_between(const at::Tensor& first, const at::Tensor& second) {
  return static_cast<const char*>(second.data_ptr()) - static_cast<const char*>(first.data_ptr());
}

at::Tensor parameter(const at::Tensor& values) {
  at::Tensor tensor = values.clone();
  tensor.requires_grad_();
  return tensor;
}

at::Tensor numbers(std::int64_t first, std::int64_t count, at::ScalarType type = at::kFloat) {
  return at::arange(first, first + count, at::TensorOptions().dtype(type));
}

TEST(FlatLayout, BeginsEveryTensorAt64BytesAndPadsWithZeros) {
  for (const auto& [type, elements_per_64_bytes] : {std::pair{at::kFloat, 16}, {at::kDouble, 8}}) {
    SCOPED_TRACE(c10::toString(type));
    const auto options = at::TensorOptions().dtype(type);
    const std::vector<NamedTensor> tensors{
        {"odd", at::zeros({3}, options)},   {"matrix", at::zeros({2, 5}, options)},
        {"scalar", at::zeros({}, options)}, {"empty", at::zeros({0, 4}, options)},
        {"full", at::zeros({16}, options)}, {"one more", at::zeros({17}, options)},
        {"last", at::zeros({1}, options)}};
    const FlatLayout layout(tensors, type);
    EXPECT_EQ(layout.type(), type);

    std::int64_t expected_size = 0;
    std::vector<std::int64_t> begins;
    for (const NamedTensor& tensor : tensors) {
      begins.push_back(expected_size);
      while (expected_size < begins.back() + tensor.tensor.numel()) {
        expected_size += elements_per_64_bytes;
      }
    }
    ASSERT_EQ(layout.size(), expected_size);

    at::Tensor flat = at::zeros({layout.size()}, options);
    const auto views = layout.views(flat);
    ASSERT_EQ(views.size(), tensors.size());
    std::int64_t elements = 0;
    for (std::size_t i = 0; i < views.size(); ++i) {
      EXPECT_EQ(views[i].sizes(), tensors[i].tensor.sizes()) << tensors[i].name;
      EXPECT_TRUE(views[i].is_contiguous()) << tensors[i].name;
      EXPECT_EQ(views[i].storage_offset(), begins[i]) << tensors[i].name;
      views[i].fill_(1);
      elements += views[i].numel();
    }
    // Views overlap neither each other nor leave the buffer.
    EXPECT_EQ(flat.sum().item<double>(), static_cast<double>(elements));
  }
}

TEST(FlatLayout, MakesViewsOfATensorAndOfMemoryAlike) {
  const std::vector<NamedTensor> tensors{{"a", at::zeros({3, 2})}, {"b", at::zeros({20})}};
  const FlatLayout layout(tensors, at::kFloat);
  std::vector<float> memory(static_cast<std::size_t>(layout.size()) + 5, 0.0F);
  const at::Tensor flat = at::from_blob(memory.data(), {static_cast<std::int64_t>(memory.size())});

  const auto of_tensor = layout.views(flat);
  const auto of_memory = layout.views(memory.data());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(of_tensor[i].data_ptr(), of_memory[i].data_ptr());
    EXPECT_EQ(of_tensor[i].sizes(), of_memory[i].sizes());
    EXPECT_EQ(of_tensor[i].strides(), of_memory[i].strides());
  }
  of_memory[1].fill_(7);
  EXPECT_EQ(memory[16], 7.0F);
  EXPECT_EQ(of_tensor[1][19].item<float>(), 7.0F);
  // From an offset on, in elements.
  EXPECT_EQ(bytes_between(flat, layout.views(flat, 5)[1]), 4 * (16 + 5));
}

TEST(FlatLayout, OfNothingIsEmpty) {
  const FlatLayout layout({}, at::kFloat);
  EXPECT_EQ(layout.size(), 0);
  EXPECT_TRUE(layout.views(at::zeros({0})).empty());
}

// A model with one of everything.
Model mixed_model() {
  const at::Tensor tied = parameter(numbers(10, 6).reshape({2, 3}));
  const at::Tensor statistic = numbers(40, 5);
  return {.forward = [](const at::Tensor& input) { return input; },
          .set_training = [](bool) {},
          .parameters = {{"embed", tied},
                         {"frozen", numbers(20, 4)},
                         {"bias", parameter(numbers(30, 17))},
                         {"decode", tied},
                         // What is not trained may be of any type.
                         {"codes", numbers(50, 3, at::kChar)}},
          .buffers = {{"count", at::full({}, 3, at::kLong)},
                      {"mean", statistic},
                      {"absent", at::Tensor()},
                      {"same mean", statistic},
                      {"deviation", numbers(60, 2)}}};
}

TEST(SharedState, NamesEverythingInTheOrderOfDeclaration) {
  const SharedState state(mixed_model());
  EXPECT_THAT(names(state.parameters()), ElementsAre("embed", "frozen", "bias", "decode", "codes"));
  EXPECT_THAT(names(state.buffers()), ElementsAre("count", "mean", "same mean", "deviation"));
}

TEST(SharedState, HoldsTheModelsInitialValuesAsCopies) {
  const Model model = mixed_model();
  const SharedState state(model);
  for (std::size_t i = 0; i < model.parameters.size(); ++i) {
    const at::Tensor& shared = state.parameters()[i].tensor;
    EXPECT_TRUE(at::equal(shared, model.parameters[i].tensor)) << model.parameters[i].name;
    EXPECT_NE(shared.data_ptr(), model.parameters[i].tensor.data_ptr());
    EXPECT_FALSE(shared.requires_grad()) << "a view of the state is no leaf of a graph";
  }
  EXPECT_TRUE(at::equal(state.buffers()[0].tensor, model.buffers[0].tensor));
  EXPECT_TRUE(at::equal(state.buffers()[3].tensor, model.buffers[4].tensor));
}

TEST(SharedState, LaysTrainedParametersIntoOneBufferEachOnce) {
  const SharedState state(mixed_model());
  EXPECT_EQ(state.type(), at::kFloat);
  // embed (also called decode) in 16 elements, bias in 32; neither frozen nor codes.
  ASSERT_EQ(state.flat_parameters().sizes(), (std::vector<std::int64_t>{48}));
  EXPECT_EQ(state.parameter_layout().size(), 48);
  const at::Tensor expected = at::zeros({48});
  expected.narrow(0, 0, 6).copy_(numbers(10, 6));
  expected.narrow(0, 16, 17).copy_(numbers(30, 17));
  EXPECT_TRUE(at::equal(state.flat_parameters(), expected));
}

TEST(SharedState, LaysFloatingBuffersIntoOneBufferAndKeepsCountersApart) {
  const SharedState state(mixed_model());
  const at::Tensor expected = at::zeros({32});
  expected.narrow(0, 0, 5).copy_(numbers(40, 5));
  expected.narrow(0, 16, 2).copy_(numbers(60, 2));
  EXPECT_TRUE(at::equal(state.flat_buffers(), expected));
  ASSERT_EQ(state.counters().size(), 1U);
  EXPECT_EQ(state.counters()[0].item<std::int64_t>(), 3);
  ASSERT_EQ(state.frozen().size(), 2U);
}

TEST(SharedState, ShowsTheStateInTrainingByEveryName) {
  const SharedState state(mixed_model());
  const auto& parameters = state.parameters();
  state.flat_parameters().fill_(-1);
  for (const std::size_t trained : {0U, 2U, 3U}) {
    EXPECT_TRUE(parameters[trained].tensor.eq(-1).all().item<bool>()) << parameters[trained].name;
  }
  EXPECT_EQ(parameters[0].tensor.data_ptr(), parameters[3].tensor.data_ptr()) << "tied";
  EXPECT_TRUE(at::equal(parameters[1].tensor, numbers(20, 4))) << "frozen";
  state.flat_buffers().fill_(-2);
  state.counters()[0].fill_(9);
  EXPECT_EQ(state.buffers()[0].tensor.item<std::int64_t>(), 9);
  for (const std::size_t statistic : {1U, 2U, 3U}) {
    EXPECT_TRUE(state.buffers()[statistic].tensor.eq(-2).all().item<bool>());
  }
}

std::string error_of_model_with(std::vector<NamedTensor> parameters,
                                std::vector<NamedTensor> buffers = {}) {
  return error_of([&] {
    const SharedState state(Model{.forward = {},
                                  .set_training = {},
                                  .parameters = std::move(parameters),
                                  .buffers = std::move(buffers)});
  });
}

TEST(SharedState, RefusesWhatItCannotTrain) {
  const std::string none = "the model has no parameter to train (none with requires_grad)";
  EXPECT_EQ(error_of_model_with({}), none);
  EXPECT_EQ(error_of_model_with({{"frozen", numbers(0, 3)}}), none);
  EXPECT_EQ(error_of_model_with({{"integers", numbers(0, 3, at::kLong)}}), none);
  EXPECT_EQ(error_of_model_with({{"half", parameter(numbers(0, 3, at::kHalf))}}),
            "parameter 'half' is Half, which is not trained; accepted: Float, Double "
            "(module.float(); --precision says what it is computed in)");
  EXPECT_THAT(error_of_model_with({{"complex", parameter(numbers(0, 3).to(at::kComplexFloat))}}),
              StartsWith("parameter 'complex' is ComplexFloat, which is not trained"));
  EXPECT_EQ(error_of_model_with({{"empty", parameter(at::zeros({0, 4}))}}),
            "parameter 'empty' has no element; accepted: a model with some to train");
  EXPECT_EQ(
      error_of_model_with(
          {{"first", parameter(numbers(0, 3))}, {"second", parameter(numbers(0, 3, at::kDouble))}}),
      "parameter 'second' is Double, but the first parameter is Float; all must be of one type");
  EXPECT_EQ(error_of_model_with({{"weight", parameter(numbers(0, 3, at::kDouble))}},
                                {{"mean", numbers(0, 3)}}),
            "buffer 'mean' is Float, but the first parameter is Double; all must be of one type");
}

TEST(SharedState, RefusesTensorsThatAreNotOnTheCpu) {
  const at::Tensor elsewhere = at::empty({3}, at::TensorOptions().device(at::kMeta));
  EXPECT_EQ(error_of_model_with({{"weight", elsewhere}}),
            "parameter 'weight' is on meta; accepted: cpu");
  EXPECT_EQ(error_of_model_with({{"weight", parameter(numbers(0, 3))}}, {{"mean", elsewhere}}),
            "buffer 'mean' is on meta; accepted: cpu");
}

TEST(SharedState, RefusesWhatIsNotDense) {
  const at::Tensor sparse = at::eye(3).to_sparse();
  EXPECT_EQ(error_of_model_with({{"weight", parameter(sparse)}}),
            "parameter 'weight' is Sparse; accepted: a dense tensor");
  EXPECT_EQ(error_of_model_with({{"weight", parameter(numbers(0, 3))}}, {{"mean", sparse}}),
            "buffer 'mean' is Sparse; accepted: a dense tensor");
  EXPECT_EQ(error_of_model_with({{"weight", at::Tensor()}}),
            "parameter 'weight' is undefined; accepted: a tensor");
}

TEST(SharedState, RefusesASumOfWhatHasNone) {
  Model model{.forward = {},
              .set_training = {},
              .parameters = {{"weight", parameter(numbers(0, 3))}},
              .buffers = {{"phase", numbers(0, 1).to(at::kComplexFloat)}},
              .buffer_rules = {{.buffer = "phase", .combination = BufferCombination::sum}}};
  EXPECT_EQ(error_of([&] { const SharedState state(model); }),
            "the rule of buffer 'phase': ComplexFloat has no sum; accepted: first");
}

}  // namespace
}  // namespace rubato
