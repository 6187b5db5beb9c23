#include <string>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>

#include <rubato/base/state.hpp>
#include <rubato/libtorch/dataset.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

TEST(Arrays, HoldEveryTypeAndShape) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong,
                                    at::kInt, at::kShort, at::kChar, at::kByte, at::kBool}) {
    for (const std::vector<std::int64_t>& shape :
         {std::vector<std::int64_t>{2, 3}, {}, {0}, {5}, {1, 2, 0}}) {
      SCOPED_TRACE(std::string(c10::toString(type)) + testing::PrintToString(shape));
      at::manual_seed(1);
      const at::Tensor values = (at::rand(shape) * 100).to(type);
      State state;
      put_array(state, "", array_of({"it", values}));
      const State read = parse_state(state_bytes(state), "the state");
      const at::Tensor into = at::zeros(shape, type);
      read_array(read, "", array_of({"it", into}));
      EXPECT_TRUE(at::equal(into, values));
      EXPECT_TRUE(at::equal(tensor_of(array_of({"it", into})).tensor, values));
      // No other type of as many bytes is taken for it.
      const at::ScalarType other = type == at::kDouble  ? at::kLong
                                   : type == at::kLong  ? at::kDouble
                                   : type == at::kFloat ? at::kInt
                                   : type == at::kInt   ? at::kFloat
                                   : type == at::kHalf  ? at::kBFloat16
                                   : type == at::kShort ? at::kHalf
                                   : type == at::kChar  ? at::kByte
                                   : type == at::kByte  ? at::kBool
                                                        : at::kChar;
      const at::Tensor of_other = at::zeros(shape, other);
      EXPECT_THAT(error_of([&] {
                    read_array(read, "", array_of({"it", of_other}));
                  }),
                  HasSubstr("the state's 'it' is "));
    }
  }
}

TEST(Arrays, OfComplexNumbersAreOfTheirParts) {
  const at::Tensor values = at::complex(at::rand({2, 3}), at::rand({2, 3}));
  const NamedArray array = array_of({"it", values});
  EXPECT_EQ(array.type, ElementType::f32);
  EXPECT_THAT(array.shape, ElementsAre(2, 3, 2));
  EXPECT_TRUE(at::equal(at::view_as_complex(tensor_of(array).tensor), values));
}

TEST(Arrays, SeeTheTensorAsItChanges) {
  const at::Tensor values = at::zeros({2, 2});
  const NamedArray array = array_of({"it", values});
  values.fill_(3);
  EXPECT_EQ(array.values<float>()[3], 3);
  tensor_of(array).tensor.mul_(2);
  EXPECT_EQ(values.sum().item<float>(), 24);
}

// As many bytes are not enough: a matrix is not its transpose, and two floats are not a double.
TEST(Arrays, AreOfOneTypeAndOneShape) {
  State state;
  const at::Tensor weight = at::arange(6, at::kFloat).reshape({2, 3});
  put_array(state, "model.", array_of({"weight", weight}));
  const auto error_into = [&](const at::Tensor& tensor) {
    return error_of([&] { read_array(state, "model.", array_of({"weight", tensor})); });
  };
  EXPECT_EQ(error_into(at::zeros({2, 3})), "no error");
  const at::Tensor transposed = at::zeros({3, 2});
  EXPECT_EQ(error_into(transposed),
            "the state's 'model.weight' is F32 of shape [2, 3], the model's F32 of shape [3, 2]");
  EXPECT_TRUE(at::equal(transposed, at::zeros({3, 2}))) << "what is refused is not read";
  EXPECT_EQ(error_into(at::zeros({6})),
            "the state's 'model.weight' is F32 of shape [2, 3], the model's F32 of shape [6]");
  EXPECT_EQ(error_into(at::zeros({3}, at::kDouble)),
            "the state's 'model.weight' is F32 of shape [2, 3], the model's F64 of shape [3]");
}

TEST(Arrays, AreDense) {
  EXPECT_EQ(error_of([] {
              return array_of({"it", at::zeros({2, 3}).t()});
            }),
            "'it' is not dense; accepted: a contiguous tensor");
}

TEST(Arrays, CopiesStayAsTheyWere) {
  const at::Tensor values = at::ones({3});
  const at::Tensor none = at::ones({0});
  const std::vector<NamedArray> arrays =
      arrays_of(std::vector<NamedTensor>{{"some", values}, {"none", none}});
  ArrayCopies copies(arrays);
  values.zero_();
  const ArrayCopies moved = std::move(copies);
  ASSERT_EQ(moved.arrays().size(), 2U);
  EXPECT_EQ(moved.arrays()[0].name, "some");
  EXPECT_TRUE(at::equal(tensor_of(moved.arrays()[0]).tensor, at::ones({3})));
  EXPECT_EQ(moved.arrays()[1].size(), 0U);
}

}  // namespace
}  // namespace rubato
