#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include "libtorch/operators/operators.hpp"
#include "operators/random_tensors.hpp"

namespace rubato {
namespace {

using test::channels_last;
using test::random_tensor;

struct Pooling {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> kernel{2, 2};
  std::vector<std::int64_t> stride{};
  std::vector<std::int64_t> padding{0, 0};
  std::vector<std::int64_t> dilation{1, 1};
  bool ceil = false;
};

const std::vector<Pooling>& poolings() {
  static const std::vector<Pooling> all{
      {.sizes = {2, 3, 24, 24}},
      {.sizes = {3, 2, 8, 8}},
      {.sizes = {2, 2, 6, 34}},
      {.sizes = {1, 5, 7, 9}},
      {.sizes = {1, 1, 2, 2}},
      {.sizes = {2, 2, 9, 9}, .ceil = true},
      {.sizes = {2, 2, 9, 37}, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
      {.sizes = {2, 2, 12, 20}, .kernel = {3, 3}},
      {.sizes = {2, 2, 12, 20}, .kernel = {3, 2}},
      {.sizes = {2, 2, 12, 20}, .kernel = {2, 3}, .stride = {1, 1}, .padding = {1, 1}},
      {.sizes = {1, 2, 15, 31}, .kernel = {3, 3}, .stride = {2, 3}, .dilation = {2, 3}},
      {.sizes = {1, 2, 15, 31},
       .kernel = {4, 5},
       .stride = {3, 5},
       .padding = {2, 2},
       .ceil = true},
      {.sizes = {1, 2, 5, 5}, .kernel = {5, 5}, .stride = {1, 1}, .padding = {2, 2}},
      {.sizes = {1, 2, 11, 13}, .kernel = {5, 5}, .padding = {2, 2}, .dilation = {2, 2}},
      // One number for both dimensions.
      {.sizes = {2, 2, 12, 20}, .kernel = {2}, .padding = {0}, .dilation = {1}},
      {.sizes = {1, 2, 13, 22}, .kernel = {3}, .stride = {2}, .padding = {1}, .dilation = {2}},
      {.sizes = {1, 2, 13, 22}, .kernel = {3, 2}, .stride = {2}, .padding = {1}, .dilation = {1}},
      // Windows of two columns that are a partition but for one thing: they overlap, leave a gap,
      // begin in the padding, are wider, or leave a row or a column over.
      {.sizes = {2, 2, 12, 20}, .stride = {2, 1}},
      {.sizes = {2, 2, 12, 20}, .stride = {1, 2}},
      {.sizes = {2, 2, 12, 21}, .stride = {2, 3}},
      {.sizes = {2, 2, 12, 20}, .stride = {3, 2}},
      {.sizes = {2, 2, 12, 20}, .padding = {1, 0}},
      {.sizes = {2, 2, 12, 20}, .padding = {0, 1}},
      {.sizes = {2, 2, 12, 20}, .dilation = {2, 1}},
      {.sizes = {2, 2, 12, 20}, .dilation = {1, 2}},
      {.sizes = {2, 2, 13, 20}},
      {.sizes = {2, 2, 12, 21}},
      {.sizes = {2, 2, 13, 20}, .ceil = true},
      {.sizes = {2, 2, 12, 21}, .ceil = true},
      {.sizes = {2, 2, 12, 20}, .kernel = {1, 2}},
      {.sizes = {2, 2, 12, 20}, .kernel = {4, 2}},
      {.sizes = {2, 2, 12, 20}, .kernel = {2, 1}},
      {.sizes = {2, 2, 12, 20}, .kernel = {2, 4}},
  };
  return all;
}

struct Pooled {
  at::Tensor output;
  at::Tensor indices;
  at::Tensor gradient;
};

Pooled pooled(const ReplacedOperators& operators, const at::Tensor& input, const Pooling& c) {
  const OperatorScope scope(operators);
  const auto [output, indices] =
      at::max_pool2d_with_indices(input, c.kernel, c.stride, c.padding, c.dilation, c.ceil);
  const at::Tensor gradient = at::max_pool2d_with_indices_backward(
      random_tensor(output.sizes(), 7).to(input.options()), input, c.kernel, c.stride, c.padding,
      c.dilation, c.ceil, indices);
  return {output, indices, gradient};
}

void expect_libtorchs(const at::Tensor& input, const Pooling& c) {
  const Pooled ours = pooled({}, input, c);
  const Pooled theirs = pooled(ReplacedOperators::none(), input, c);
  // NaN is not equal to itself.
  EXPECT_TRUE(at::equal(ours.output.nan_to_num(9e9), theirs.output.nan_to_num(9e9)));
  EXPECT_TRUE(at::equal(ours.indices, theirs.indices));
  EXPECT_TRUE(at::equal(ours.gradient, theirs.gradient));
  EXPECT_EQ(ours.output.strides(), theirs.output.strides());
  EXPECT_EQ(ours.gradient.strides(), theirs.gradient.strides());
}

TEST(MaxPool, HasLibtorchsBits) {
  for (std::size_t i = 0; i < poolings().size(); ++i) {
    SCOPED_TRACE(i);
    expect_libtorchs(random_tensor(poolings()[i].sizes), poolings()[i]);
  }
}

// Few different values: most windows have two largest ones.
TEST(MaxPool, TakesTheFirstOfEqualOnes) {
  for (std::size_t i = 0; i < poolings().size(); ++i) {
    SCOPED_TRACE(i);
    expect_libtorchs(random_tensor(poolings()[i].sizes).round(), poolings()[i]);
  }
}

TEST(MaxPool, TakesNaNAndWhereAllIsMinusInfinity) {
  for (std::size_t i = 0; i < poolings().size(); ++i) {
    SCOPED_TRACE(i);
    at::Tensor input = random_tensor(poolings()[i].sizes);
    input.masked_fill_(random_tensor(poolings()[i].sizes, 2) > 1, std::nan(""));
    expect_libtorchs(input, poolings()[i]);
    input.fill_(-std::numeric_limits<float>::infinity());
    expect_libtorchs(input, poolings()[i]);
  }
}

TEST(MaxPool, LeavesOtherTensorsToLibtorch) {
  const Pooling c{.sizes = {2, 16, 8, 8}};
  const at::Tensor input = random_tensor(c.sizes);
  expect_libtorchs(channels_last(input), c);
  expect_libtorchs(input.to(at::kDouble), c);
  expect_libtorchs(input[0], c);
  expect_libtorchs(input.transpose(2, 3), c);
}

// Every number of windows that vectors of eight are filled with, and left over of.
TEST(MaxPool, HasLibtorchsBitsForEveryWidth) {
  for (std::int64_t columns = 2; columns <= 40; ++columns) {
    const std::vector<std::int64_t> sizes{2, 2, 6, columns};
    for (const Pooling& c :
         {Pooling{.sizes = sizes},
          Pooling{.sizes = sizes, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
          Pooling{.sizes = sizes, .kernel = {2, 3}, .stride = {1, 1}, .padding = {1, 1}},
          Pooling{.sizes = sizes, .kernel = {3, 3}, .padding = {1, 1}, .ceil = true}}) {
      SCOPED_TRACE(testing::Message()
                   << columns << " columns, kernel " << c.kernel[0] << " x " << c.kernel[1]);
      expect_libtorchs(random_tensor(c.sizes), c);
    }
  }
}

// Two rows of windows share the vectors at their ends, or one row has two groups of four.
TEST(MaxPool, HasLibtorchsBitsForEveryNumberOfRows) {
  for (std::int64_t rows = 2; rows <= 9; ++rows) {
    for (std::int64_t columns = 2; columns <= 40; ++columns) {
      const std::vector<std::int64_t> sizes{1, 3, rows, columns};
      const at::Tensor input = random_tensor(sizes);
      const at::Tensor is_nan = random_tensor(sizes, 2) > 1;
      for (const Pooling& c :
           {Pooling{.sizes = sizes}, Pooling{.sizes = sizes, .kernel = {1, 2}}}) {
        SCOPED_TRACE(testing::Message()
                     << rows << " x " << columns << ", kernel " << c.kernel[0] << " x 2");
        expect_libtorchs(input, c);
        expect_libtorchs(input.round(), c);
        expect_libtorchs(input.masked_fill(is_nan, std::nan("")), c);
      }
    }
  }
}

TEST(MaxPool, RefusesInLibtorchsWords) {
  const at::Tensor input = random_tensor({2, 3, 8, 12});
  const ReplacedOperators all;
  const ReplacedOperators none = ReplacedOperators::none();
  const auto error = [&](const Pooling& c, const ReplacedOperators& operators) {
    const OperatorScope scope(operators);
    try {
      static_cast<void>(
          at::max_pool2d_with_indices(input, c.kernel, c.stride, c.padding, c.dilation, c.ceil));
    } catch (const c10::Error& refused) {
      return std::string(refused.what_without_backtrace());
    }
    return std::string("no error");
  };
  const std::vector<Pooling> wrong{
      {.sizes = {}, .padding = {2, 0}},   {.sizes = {}, .padding = {0, 2}},
      {.sizes = {}, .kernel = {0, 2}},    {.sizes = {}, .kernel = {2, 0}},
      {.sizes = {}, .stride = {0, 2}},    {.sizes = {}, .stride = {2, 0}},
      {.sizes = {}, .dilation = {0, 1}},  {.sizes = {}, .dilation = {1, 0}},
      {.sizes = {}, .kernel = {9, 2}},    {.sizes = {}, .kernel = {2, 13}},
      {.sizes = {}, .kernel = {2, 2, 2}}, {.sizes = {}, .kernel = {}}};
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    EXPECT_NE(error(wrong[i], none), "no error") << i;
    EXPECT_EQ(error(wrong[i], all), error(wrong[i], none)) << i;
  }
}

TEST(MaxPool, SpreadsAGradientOfAnyLayout) {
  const Pooling c{.sizes = {2, 3, 8, 12}};
  const at::Tensor input = random_tensor(c.sizes);
  const ReplacedOperators all;
  const OperatorScope scope(all);
  const auto [output, indices] = at::max_pool2d_with_indices(input, {2, 2});
  const at::Tensor gradient = random_tensor(output.sizes(), 3);
  const auto back = [&](const at::Tensor& of_output, const at::Tensor& places) {
    return at::max_pool2d_with_indices_backward(of_output, input, {2, 2}, {2, 2}, {0, 0}, {1, 1},
                                                false, places);
  };
  const at::Tensor expected = back(gradient, indices);
  EXPECT_TRUE(at::equal(back(channels_last(gradient), channels_last(indices)), expected));
  EXPECT_TRUE(at::equal(expected.sum(at::kDouble), gradient.sum(at::kDouble)) ||
              at::allclose(expected.sum(at::kDouble), gradient.sum(at::kDouble)));
}

}  // namespace
}  // namespace rubato
