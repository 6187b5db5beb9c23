#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include "base/machine/instruction_set.hpp"
#include "libtorch/operators/lane_convolution.hpp"
#include "libtorch/operators/operators.hpp"
#include "operators/random_tensors.hpp"

namespace rubato {
namespace {

using test::channels_last;
using test::random_tensor;
using test::relative_error;

constexpr double kConvolutionTolerance = 5e-6;

// A number for each dimension.
const std::vector<std::int64_t> kOnes{1, 1};
const std::vector<std::int64_t> kNone{0, 0};

struct ConvolutionCase {
  std::int64_t images;
  std::int64_t inputs;
  std::int64_t outputs;
  std::array<std::int64_t, 2> size;
  std::vector<std::int64_t> kernel{3, 3};
  std::vector<std::int64_t> stride{1, 1};
  std::vector<std::int64_t> padding{0, 0};
  std::vector<std::int64_t> dilation{1, 1};

  [[nodiscard]] at::Tensor input() const {
    return random_tensor({images, inputs, size[0], size[1]}, 1);
  }
  [[nodiscard]] at::Tensor weight() const {
    return random_tensor({outputs, inputs, kernel[0], kernel[1]}, 2);
  }
};

// All numbers of channels and columns that blocks are cut into, images that fill no vector, and
// strides, padding and dilation that leave rows and columns out.
const std::vector<ConvolutionCase>& convolution_cases() {
  static const std::vector<ConvolutionCase> all{
      {.images = 32, .inputs = 1, .outputs = 10, .size = {28, 28}, .kernel = {5, 5}},
      {.images = 16, .inputs = 10, .outputs = 20, .size = {12, 12}, .kernel = {5, 5}},
      {.images = 8, .inputs = 3, .outputs = 16, .size = {9, 11}, .padding = {1, 1}},
      {.images = 33, .inputs = 2, .outputs = 1, .size = {7, 3}},
      {.images = 17, .inputs = 4, .outputs = 2, .size = {5, 6}, .kernel = {1, 4}},
      {.images = 5, .inputs = 7, .outputs = 3, .size = {6, 9}, .kernel = {4, 1}},
      {.images = 1, .inputs = 6, .outputs = 7, .size = {8, 10}, .padding = {2, 1}},
      {.images = 20,
       .inputs = 3,
       .outputs = 7,
       .size = {11, 9},
       .kernel = {3, 2},
       .stride = {2, 2},
       .padding = {1, 1}},
      {.images = 9,
       .inputs = 5,
       .outputs = 6,
       .size = {13, 14},
       .stride = {3, 2},
       .padding = {2, 0},
       .dilation = {1, 2}},
      {.images = 12,
       .inputs = 2,
       .outputs = 11,
       .size = {10, 12},
       .stride = {2, 3},
       .padding = {3, 3},
       .dilation = {2, 1}},
      {.images = 4, .inputs = 2, .outputs = 3, .size = {5, 5}, .kernel = {2, 2}, .stride = {4, 4}},
      {.images = 4, .inputs = 2, .outputs = 3, .size = {1, 5}, .kernel = {1, 2}, .stride = {3, 1}},
      {.images = 3, .inputs = 2, .outputs = 3, .size = {2, 2}, .kernel = {5, 5}, .padding = {4, 4}},
      {.images = 10, .inputs = 17, .outputs = 18, .size = {6, 6}, .kernel = {1, 1}},
      {.images = 16,
       .inputs = 3,
       .outputs = 5,
       .size = {13, 13},
       .kernel = {7, 7},
       .stride = {2, 2},
       .padding = {3, 3}},
  };
  return all;
}

struct Convolved {
  at::Tensor output;
  at::Tensor input_gradient;
  at::Tensor weight_gradient;
  at::Tensor bias_gradient;
};

at::Tensor bias_of(const ConvolutionCase& c) {
  return random_tensor({c.outputs}, 3);
}
at::Tensor gradient_like(const at::Tensor& output) {
  return random_tensor(output.sizes(), 4).to(output.options());
}

// By whatever the dispatcher takes.
Convolved dispatched(const ConvolutionCase& c, const at::Tensor& input, const at::Tensor& weight) {
  const at::Tensor bias = bias_of(c).to(input.options());
  const at::Tensor output =
      at::convolution(input, weight, bias, c.stride, c.padding, c.dilation, false, {0, 0}, 1);
  const auto [of_input, of_weight, of_bias] = at::convolution_backward(
      gradient_like(output), input, weight, at::IntArrayRef{c.outputs}, c.stride, c.padding,
      c.dilation, false, {0, 0}, 1, {true, true, true});
  return {output, of_input, of_weight, of_bias};
}

class Memory {
 public:
  explicit Memory(const lane_convolution::Sizes& sizes)
      : floats_(sizes.floats + kAlignment), offsets_(sizes.offsets) {
    void* begin = floats_.data();
    std::size_t space = floats_.size() * sizeof(float);
    // What is read before it was written would be seen.
    std::fill(floats_.begin(), floats_.end(), 1e30F);
    scratch_.floats =
        static_cast<float*>(std::align(kAlignment, sizes.floats * sizeof(float), begin, space));
    scratch_.offsets = offsets_.data();
  }
  [[nodiscard]] const lane_convolution::Scratch& scratch() const { return scratch_; }

 private:
  static constexpr std::size_t kAlignment = 64;
  std::vector<float> floats_;
  std::vector<std::ptrdiff_t> offsets_;
  lane_convolution::Scratch scratch_;
};

// By the kernels of one instruction set, whether or not the dispatcher would take them.
Convolved convolved(const lane_convolution::Kernels& kernels, const ConvolutionCase& c,
                    const at::Tensor& input, const at::Tensor& weight) {
  const auto axis = [&](std::size_t d) -> operators::Axis {
    const std::int64_t room = c.size[d] + 2 * c.padding[d] - c.dilation[d] * (c.kernel[d] - 1) - 1;
    return {.input = c.size[d],
            .output = room / c.stride[d] + 1,
            .kernel = c.kernel[d],
            .stride = c.stride[d],
            .padding = c.padding[d],
            .dilation = c.dilation[d]};
  };
  const bool last = !input.is_contiguous();
  const lane_convolution::Shape shape{.images = c.images,
                                      .input_channels = c.inputs,
                                      .output_channels = c.outputs,
                                      .rows = axis(0),
                                      .columns = axis(1),
                                      .channels_last = last,
                                      .weight_output = weight.stride(0),
                                      .weight_input = weight.stride(1),
                                      .weight_row = weight.stride(2),
                                      .weight_column = weight.stride(3)};
  const auto format = last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  const at::Tensor bias = bias_of(c);
  Convolved result{at::empty({c.images, c.outputs, shape.rows.output, shape.columns.output},
                             input.options(), format),
                   at::empty_like(input), at::empty_like(weight), at::empty({c.outputs})};
  const Memory forward(kernels.forward_sizes(shape));
  kernels.forward(shape,
                  {.input = input.data_ptr<float>(),
                   .weight = weight.data_ptr<float>(),
                   .bias = bias.data_ptr<float>(),
                   .output = result.output.data_ptr<float>()},
                  forward.scratch());
  const at::Tensor gradient = gradient_like(result.output).contiguous(format);
  const Memory backward(kernels.backward_sizes(shape));
  kernels.backward(shape,
                   {.gradient = gradient.data_ptr<float>(),
                    .input = input.data_ptr<float>(),
                    .weight = weight.data_ptr<float>(),
                    .input_gradient = result.input_gradient.data_ptr<float>(),
                    .weight_gradient = result.weight_gradient.data_ptr<float>(),
                    .bias_gradient = result.bias_gradient.data_ptr<float>()},
                   backward.scratch());
  return result;
}

void expect_close(const Convolved& ours, const Convolved& exact) {
  EXPECT_LT(relative_error(ours.output, exact.output), kConvolutionTolerance);
  EXPECT_LT(relative_error(ours.input_gradient, exact.input_gradient), kConvolutionTolerance);
  EXPECT_LT(relative_error(ours.weight_gradient, exact.weight_gradient), kConvolutionTolerance);
  EXPECT_LT(relative_error(ours.bias_gradient, exact.bias_gradient), kConvolutionTolerance);
}

void expect_equal(const Convolved& a, const Convolved& b) {
  EXPECT_TRUE(at::equal(a.output, b.output));
  EXPECT_TRUE(at::equal(a.input_gradient, b.input_gradient));
  EXPECT_TRUE(at::equal(a.weight_gradient, b.weight_gradient));
  EXPECT_TRUE(at::equal(a.bias_gradient, b.bias_gradient));
}

bool cpu_has(InstructionSet set) {
  return cpu_instruction_set() >= set;
}

TEST(LaneConvolution, IsThatOfDoublesRounded) {
  if (!cpu_has(InstructionSet::avx2)) GTEST_SKIP() << "needs AVX2 and FMA";
  for (std::size_t i = 0; i < convolution_cases().size(); ++i) {
    SCOPED_TRACE(i);
    const ConvolutionCase& c = convolution_cases()[i];
    const Convolved exact = dispatched(c, c.input().to(at::kDouble), c.weight().to(at::kDouble));
    const auto kernels = lane_convolution::avx2_kernels();
    expect_close(convolved(kernels, c, c.input(), c.weight()), exact);
    expect_close(convolved(kernels, c, channels_last(c.input()), channels_last(c.weight())), exact);
  }
}

TEST(LaneConvolution, HasTheSameBitsWithWiderVectors) {
  if (!cpu_has(InstructionSet::avx512)) GTEST_SKIP() << "needs AVX-512";
  for (std::size_t i = 0; i < convolution_cases().size(); ++i) {
    SCOPED_TRACE(i);
    const ConvolutionCase& c = convolution_cases()[i];
    for (const at::Tensor& input : {c.input(), channels_last(c.input())}) {
      expect_equal(convolved(lane_convolution::avx512_kernels(), c, input, c.weight()),
                   convolved(lane_convolution::avx2_kernels(), c, input, c.weight()));
    }
  }
}

TEST(Convolution, TakesFewChannels) {
  if (!cpu_has(InstructionSet::avx2)) GTEST_SKIP() << "needs AVX2 and FMA";
  const ReplacedOperators all;
  const OperatorScope scope(all);
  for (const std::size_t i : {0UL, 1UL, 2UL}) {
    const ConvolutionCase& c = convolution_cases()[i];
    expect_equal(dispatched(c, c.input(), c.weight()),
                 convolved(lane_convolution::avx2_kernels(), c, c.input(), c.weight()));
  }
}

// With a number for each dimension, as modules and TorchScript say it: what says one for both, as
// the defaults of at::conv2d() do, is libtorch's.
at::Tensor plain_conv2d(const at::Tensor& input, const at::Tensor& weight,
                        const c10::optional<at::Tensor>& bias = {}) {
  return at::conv2d(input, weight, bias, kOnes, kNone, kOnes);
}

TEST(Convolution, LeavesTheRestToLibtorch) {
  const ReplacedOperators all;
  const ReplacedOperators none = ReplacedOperators::none();
  const ReplacedOperators others{.convolution = false};
  const auto same = [&](const ReplacedOperators& operators, const auto& compute) {
    const auto by = [&](const ReplacedOperators& these) {
      const OperatorScope scope(these);
      return compute();
    };
    return at::equal(by(operators), by(none));
  };
  const ConvolutionCase& first = convolution_cases().front();
  const at::Tensor input = first.input();
  const at::Tensor weight = first.weight();
  EXPECT_TRUE(same(others, [&] { return plain_conv2d(input, weight); }));
  EXPECT_TRUE(same(all, [&] { return plain_conv2d(input.narrow(0, 0, 7), weight); }));
  EXPECT_TRUE(
      same(all, [&] { return plain_conv2d(input.to(at::kDouble), weight.to(at::kDouble)); }));
  EXPECT_TRUE(same(all, [&] { return plain_conv2d(input.transpose(2, 3), weight); }));
  const at::Tensor many = random_tensor({16, 32, 8, 8});
  EXPECT_TRUE(same(all, [&] { return plain_conv2d(many, random_tensor({32, 32, 2, 2}, 2)); }));
  EXPECT_TRUE(same(all, [&] {
    return at::convolution(many, random_tensor({32, 1, 3, 3}, 2), {}, {1, 1}, {0, 0}, {1, 1}, false,
                           {0, 0}, 32);
  }));
  EXPECT_TRUE(same(all, [&] {
    return at::conv_transpose2d(many, random_tensor({32, 3, 3, 3}, 2));
  }));
  // Of the shapes that a convolution of rubato's own has, backwards as well.
  const at::Tensor few = random_tensor({16, 6, 12, 12});
  const at::Tensor square = random_tensor({6, 6, 3, 3}, 2);
  EXPECT_TRUE(same(all, [&] { return at::conv_transpose2d(few, square, {}, 1, 1); }));
  EXPECT_TRUE(same(all, [&] {
    return std::get<0>(at::convolution_backward(random_tensor({16, 6, 12, 12}, 3), few, square, {},
                                                {1, 1}, {1, 1}, {1, 1}, /*transposed=*/true, {0, 0},
                                                1, {true, true, false}));
  }));
  EXPECT_TRUE(same(all, [&] {
    return at::conv1d(random_tensor({16, 2, 40}), random_tensor({8, 2, 5}, 2));
  }));
}

// Whether rubato's takes the convolution: its bits are not libtorch's then.
bool is_taken(const at::Tensor& input, const at::Tensor& weight,
              const c10::optional<at::Tensor>& bias = {},
              const std::vector<std::int64_t>& padding = kOnes) {
  const auto by = [&](const ReplacedOperators& operators) {
    const OperatorScope scope(operators);
    return at::conv2d(input, weight, bias, kOnes, padding, kOnes);
  };
  const at::Tensor ours = by({});
  const at::Tensor theirs = by(ReplacedOperators::none());
  EXPECT_TRUE(at::allclose(ours, theirs, 1e-4, 1e-4));
  if (weight.is_contiguous()) {
    EXPECT_EQ(ours.strides(), theirs.strides());
  }
  return !at::equal(ours, theirs);
}

// Each limit of docs/operators.md, from both sides. Images as large behind the kernel of 9 taps as
// before it: a value of `inputs` + `outputs` is worth 9 x `inputs` x `outputs` multiply-adds.
TEST(Convolution, TakesWhatItSaysUpToItsLimits) {
  if (!cpu_has(InstructionSet::avx2)) GTEST_SKIP() << "needs AVX2 and FMA";
  const auto taken = [](std::int64_t images, std::int64_t inputs, std::int64_t outputs, bool last) {
    const at::Tensor input = random_tensor({images, inputs, 10, 12});
    const at::Tensor weight = random_tensor({outputs, inputs, 1, 9}, 2);
    return is_taken(last ? channels_last(input) : input, weight, {}, {0, 4});
  };
  for (const bool last : {false, true}) {
    SCOPED_TRACE(last ? "channels last" : "contiguous");
    EXPECT_FALSE(taken(7, 8, 8, last));
    EXPECT_TRUE(taken(8, 8, 8, last));
    EXPECT_TRUE(taken(8, 15, 40, last));
    EXPECT_TRUE(taken(8, 40, 15, last));
    EXPECT_EQ(taken(8, 16, 40, last), !last);
    EXPECT_EQ(taken(8, 40, 16, last), !last);
    EXPECT_FALSE(taken(8, 17, 17, last));
    // The work of 16 multiply-adds for each value, and a little less.
    EXPECT_TRUE(taken(8, 2, 16, last));
    EXPECT_FALSE(taken(8, 2, 15, last));
    EXPECT_TRUE(taken(8, 4, 4, last));
    EXPECT_FALSE(taken(8, 4, 3, last));
    EXPECT_FALSE(taken(8, 3, 3, last));
  }
  // A bias that lies otherwise is libtorch's.
  const at::Tensor input = random_tensor({8, 8, 10, 12});
  const at::Tensor weight = random_tensor({8, 8, 3, 3}, 2);
  const at::Tensor bias = random_tensor({8}, 3);
  EXPECT_TRUE(is_taken(input, weight, bias));
  EXPECT_FALSE(is_taken(input, weight, at::stack({bias, bias}, 1).select(1, 0)));
  EXPECT_TRUE(is_taken(input, channels_last(weight), bias));
  EXPECT_FALSE(is_taken(input, weight.transpose(0, 1), bias));
}

// Forward and backward.
TEST(Convolution, TakesSquareKernelsByWinograd) {
  if (!cpu_has(InstructionSet::avx2)) GTEST_SKIP() << "needs AVX2 and FMA";
  const auto by_kernels = [](const lane_convolution::Kernels& kernels, const ConvolutionCase& c,
                             const at::Tensor& input) {
    const ReplacedOperators all;
    const OperatorScope scope(all);
    const Convolved mine = dispatched(c, input, c.weight());
    const Convolved expected = convolved(kernels, c, input, c.weight());
    const bool same = at::equal(mine.output, expected.output);
    EXPECT_EQ(at::equal(mine.input_gradient, expected.input_gradient), same);
    EXPECT_EQ(at::equal(mine.weight_gradient, expected.weight_gradient), same);
    return same;
  };
  const ConvolutionCase usual{
      .images = 8, .inputs = 8, .outputs = 8, .size = {4, 5}, .padding = {1, 1}};
  const auto taken = [&](auto&& change) {
    ConvolutionCase c = usual;
    change(c);
    bool any = false;
    for (const at::Tensor& input : {c.input(), channels_last(c.input())}) {
      any = by_kernels(lane_convolution::avx2_winograd_kernels(), c, input) || any;
    }
    return any;
  };
  EXPECT_TRUE(taken([](ConvolutionCase& /*as it is*/) {}));
  EXPECT_TRUE(taken([](ConvolutionCase& c) { c.inputs = c.outputs = 128; }));
  EXPECT_TRUE(taken([](ConvolutionCase& c) { c.padding = {2, 0}, c.size = {2, 6}; }));
  EXPECT_FALSE(taken([](ConvolutionCase& c) { c.images = 7; }));
  EXPECT_FALSE(taken([](ConvolutionCase& c) { c.inputs = 7; }));
  EXPECT_FALSE(taken([](ConvolutionCase& c) { c.outputs = 7; }));
  EXPECT_FALSE(taken([](ConvolutionCase& c) { c.inputs = 128, c.outputs = 129; }));
  EXPECT_FALSE(taken([](ConvolutionCase& c) { c.size = {3, 5}; }));
  EXPECT_FALSE(taken([](ConvolutionCase& c) { c.size = {4, 3}; }));
  // What is left is computed directly.
  ConvolutionCase few = usual;
  few.inputs = 7;
  EXPECT_TRUE(by_kernels(lane_convolution::avx2_kernels(), few, few.input()));
  ConvolutionCase strides = usual;
  strides.stride = {1, 2};
  EXPECT_TRUE(by_kernels(lane_convolution::avx2_kernels(), strides, strides.input()));
  ConvolutionCase dilated = usual;
  dilated.dilation = {2, 1};
  dilated.padding = {2, 1};
  EXPECT_TRUE(by_kernels(lane_convolution::avx2_kernels(), dilated, dilated.input()));
  ConvolutionCase padded = usual;
  padded.padding = {1, 3};
  EXPECT_TRUE(by_kernels(lane_convolution::avx2_kernels(), padded, padded.input()));
}

// Gradients come as autograd makes them: of the other layout, or without memory of their own.
TEST(Convolution, TakesAGradientOfAnyLayout) {
  if (!cpu_has(InstructionSet::avx2)) GTEST_SKIP() << "needs AVX2 and FMA";
  const ReplacedOperators all;
  const OperatorScope scope(all);
  const at::Tensor weight = random_tensor({8, 4, 3, 3}, 2);
  const at::Tensor gradient = random_tensor({8, 8, 6, 7}, 3);
  const auto back = [&](const at::Tensor& input, const at::Tensor& of_output) {
    return at::convolution_backward(of_output, input, weight, at::IntArrayRef{8}, {1, 1}, {0, 0},
                                    {1, 1}, false, {0, 0}, 1, {true, true, true});
  };
  for (const at::Tensor& input :
       {random_tensor({8, 4, 8, 9}), channels_last(random_tensor({8, 4, 8, 9}))}) {
    const auto [of_input, of_weight, of_bias] = back(input, gradient);
    for (const at::Tensor& same :
         {channels_last(gradient), gradient.transpose(1, 3).contiguous().transpose(1, 3)}) {
      const auto [other_input, other_weight, other_bias] = back(input, same);
      EXPECT_TRUE(at::equal(other_input, of_input));
      EXPECT_EQ(other_input.strides(), input.strides());
      EXPECT_TRUE(at::equal(other_weight, of_weight));
      EXPECT_TRUE(at::equal(other_bias, of_bias));
    }
    const at::Tensor spread = at::full({1}, 0.5).expand({8, 8, 6, 7});
    const auto [of_spread, weight_of_spread, bias_of_spread] = back(input, spread);
    const auto [expected, weight_expected, bias_expected] = back(input, spread.contiguous());
    EXPECT_TRUE(at::equal(of_spread, expected));
    EXPECT_TRUE(at::equal(weight_of_spread, weight_expected));
    EXPECT_TRUE(at::equal(bias_of_spread, bias_expected));
  }
}

// A thread computes in memory of its own, which has to hold the largest of what comes.
TEST(Convolution, GrowsItsWorkspace) {
  if (!cpu_has(InstructionSet::avx2)) GTEST_SKIP() << "needs AVX2 and FMA";
  // Little of both; many images' worth of values; many taps of few values; and little again.
  const std::vector<ConvolutionCase> all{
      {.images = 8, .inputs = 4, .outputs = 4, .size = {4, 4}, .padding = {1, 1}},
      {.images = 8, .inputs = 8, .outputs = 8, .size = {64, 64}},
      {.images = 8, .inputs = 40, .outputs = 15, .size = {15, 15}, .kernel = {13, 13}},
      {.images = 8, .inputs = 4, .outputs = 4, .size = {4, 4}, .padding = {1, 1}}};
  std::thread([&] {
    const ReplacedOperators operators;
    const OperatorScope scope(operators);
    for (const ConvolutionCase& c : all) {
      const auto kernels = c.inputs == 8 ? lane_convolution::avx2_winograd_kernels()
                                         : lane_convolution::avx2_kernels();
      expect_equal(dispatched(c, c.input(), c.weight()),
                   convolved(kernels, c, c.input(), c.weight()));
    }
  }).join();
}

// Vectors that are full, half full and not at all.
constexpr std::array<std::int64_t, 9> kImages{1, 7, 8, 9, 15, 16, 17, 24, 33};

class Draw {
 public:
  explicit Draw(unsigned seed) : generator_(seed) {}
  std::int64_t operator()(std::int64_t from, std::int64_t to) {
    return from +
           static_cast<std::int64_t>(generator_() % static_cast<std::uint64_t>(to - from + 1));
  }

 private:
  std::mt19937 generator_;
};

// Blocks of channels and columns of every size, vectors that are full, half full and not at all,
// with what strides, padding and dilation make of them.
TEST(LaneConvolution, IsThatOfDoublesForManyShapes) {
  if (!cpu_has(InstructionSet::avx2)) GTEST_SKIP() << "needs AVX2 and FMA";
  Draw draw(5);
  for (int i = 0; i < 240; ++i) {
    ConvolutionCase c{.images = kImages.at(static_cast<std::size_t>(i) % kImages.size()),
                      .inputs = draw(1, 7),
                      .outputs = 1 + i % 12,
                      .size = {draw(3, 9), 3 + i % 16}};
    for (std::size_t d = 0; d < 2; ++d) {
      c.kernel[d] = draw(1, 3);
      c.stride[d] = draw(1, 3);
      c.padding[d] = draw(0, 3);
      c.dilation[d] = draw(1, c.size[d] + 2 * c.padding[d] > 2 * (c.kernel[d] - 1) ? 2 : 1);
    }
    SCOPED_TRACE(testing::Message() << i << ": " << c.images << " x " << c.inputs << " -> "
                                    << c.outputs << " of " << c.size[0] << " x " << c.size[1]);
    const bool last = i % 2 == 1;
    const at::Tensor input = last ? channels_last(c.input()) : c.input();
    const at::Tensor weight = i % 3 == 1 ? channels_last(c.weight()) : c.weight();
    const Convolved exact = dispatched(c, input.to(at::kDouble), weight.to(at::kDouble));
    const Convolved ours = convolved(lane_convolution::avx2_kernels(), c, input, weight);
    expect_close(ours, exact);
    if (cpu_has(InstructionSet::avx512)) {
      expect_equal(convolved(lane_convolution::avx512_kernels(), c, input, weight), ours);
    }
  }
}

TEST(Convolution, RefusesInLibtorchsWords) {
  const ReplacedOperators all;
  const OperatorScope scope(all);
  const at::Tensor input = convolution_cases().front().input();
  EXPECT_THROW(plain_conv2d(input, random_tensor({10, 2, 5, 5})), c10::Error);
  EXPECT_THROW(plain_conv2d(input, random_tensor({10, 1, 29, 5})), c10::Error);
  EXPECT_THROW(plain_conv2d(input, random_tensor({10, 1, 5, 5}), random_tensor({9})), c10::Error);
  const at::Tensor weight = random_tensor({10, 1, 5, 5});
  for (const std::size_t d : {0UL, 1UL}) {
    const auto with = [d](std::int64_t usual, std::int64_t wrong) {
      std::vector<std::int64_t> values(2, usual);
      values[d] = wrong;
      return values;
    };
    EXPECT_THROW(at::conv2d(input, weight, {}, with(1, 0), kNone, kOnes), c10::Error);
    EXPECT_THROW(at::conv2d(input, weight, {}, with(1, -1), kNone, kOnes), c10::Error);
    EXPECT_THROW(at::conv2d(input, weight, {}, kOnes, with(0, -1), kOnes), c10::Error);
  }
}

TEST(Convolution, GivesOnlyTheGradientsThatAreWanted) {
  if (!cpu_has(InstructionSet::avx2)) GTEST_SKIP() << "needs AVX2 and FMA";
  const ReplacedOperators all;
  const OperatorScope scope(all);
  // Directly, and by Winograd's method.
  for (const ConvolutionCase& c :
       {convolution_cases()[1],
        ConvolutionCase{
            .images = 17, .inputs = 8, .outputs = 9, .size = {5, 8}, .padding = {1, 1}}}) {
    SCOPED_TRACE(c.inputs);
    const Convolved expected = dispatched(c, c.input(), c.weight());
    const auto gradients = [&](std::array<bool, 3> wanted) {
      return at::convolution_backward(gradient_like(expected.output), c.input(), c.weight(),
                                      at::IntArrayRef{c.outputs}, c.stride, c.padding, c.dilation,
                                      false, {0, 0}, 1, wanted);
    };
    const auto [no_input, of_weight, of_bias] = gradients({false, true, true});
    EXPECT_FALSE(no_input.defined());
    EXPECT_TRUE(at::equal(of_weight, expected.weight_gradient));
    EXPECT_TRUE(at::equal(of_bias, expected.bias_gradient));
    const auto [of_input, no_weight, no_bias] = gradients({true, false, false});
    EXPECT_TRUE(at::equal(of_input, expected.input_gradient));
    EXPECT_FALSE(no_weight.defined());
    EXPECT_FALSE(no_bias.defined());
    EXPECT_TRUE(at::equal(std::get<1>(gradients({false, true, false})), expected.weight_gradient));
    EXPECT_TRUE(at::equal(std::get<2>(gradients({false, false, true})), expected.bias_gradient));
  }
}

// Blocks of channels and tiles of every size, tiles that are cut off in one dimension or both, and
// vectors that are full, half full and not at all.
TEST(WinogradConvolution, IsThatOfDoublesForManyShapes) {
  if (!cpu_has(InstructionSet::avx2)) GTEST_SKIP() << "needs AVX2 and FMA";
  Draw draw(6);
  for (int i = 0; i < 120; ++i) {
    ConvolutionCase c{.images = kImages.at(static_cast<std::size_t>(i) % kImages.size()),
                      .inputs = draw(1, 14),
                      .outputs = 1 + i % 9,
                      .size = {draw(3, 9), 3 + i % 31},
                      .padding = {draw(0, 2), draw(0, 2)}};
    // So many channels and columns that a row of tiles is computed in parts.
    if (i % 20 == 0) c.inputs = 40, c.outputs = 33, c.size[1] = 51 + i;
    SCOPED_TRACE(testing::Message()
                 << i << ": " << c.images << " x " << c.inputs << " -> " << c.outputs << " of "
                 << c.size[0] << " x " << c.size[1] << ", " << c.padding[0] << " and "
                 << c.padding[1] << " around");
    const Convolved exact = dispatched(c, c.input().to(at::kDouble), c.weight().to(at::kDouble));
    for (const at::Tensor& input : {c.input(), channels_last(c.input())}) {
      const at::Tensor weight = i % 2 == 0 ? c.weight() : channels_last(c.weight());
      const Convolved narrow =
          convolved(lane_convolution::avx2_winograd_kernels(), c, input, weight);
      expect_close(narrow, exact);
      if (!cpu_has(InstructionSet::avx512)) continue;
      expect_equal(convolved(lane_convolution::avx512_winograd_kernels(), c, input, weight),
                   narrow);
    }
  }
}

// Kernels take several vectors of images at a time, narrow ones twice as many as wide ones.
TEST(WinogradConvolution, AddsManyPairsOfChannelsInOneOrder) {
  if (!cpu_has(InstructionSet::avx2)) GTEST_SKIP() << "needs AVX2 and FMA";
  for (const std::int64_t images : {8, 24, 200}) {
    SCOPED_TRACE(images);
    const ConvolutionCase c{
        .images = images, .inputs = 36, .outputs = 35, .size = {5, 6}, .padding = {1, 1}};
    const at::Tensor input = channels_last(c.input());
    const Convolved narrow =
        convolved(lane_convolution::avx2_winograd_kernels(), c, input, c.weight());
    expect_close(narrow, dispatched(c, input.to(at::kDouble), c.weight().to(at::kDouble)));
    if (!cpu_has(InstructionSet::avx512)) continue;
    expect_equal(convolved(lane_convolution::avx512_winograd_kernels(), c, input, c.weight()),
                 narrow);
  }
}

}  // namespace
}  // namespace rubato
