#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

#include "base/machine/instruction_set.hpp"
#include "libtorch/operators/attention_kernels.hpp"
#include "libtorch/operators/operators.hpp"
#include "operators/random_tensors.hpp"

namespace rubato {
namespace {

using test::random_tensor;
using test::relative_error;

constexpr double kAttentionTolerance = 2e-6;

struct AttentionCase {
  std::int64_t samples;
  std::int64_t tokens;
  std::int64_t heads;
  std::int64_t features;
  bool masked = false;

  [[nodiscard]] at::Tensor projection() const {
    return random_tensor({samples, tokens, 3 * heads * features}, 1);
  }
  [[nodiscard]] at::Tensor gradient() const {
    return random_tensor({samples, tokens, heads * features}, 2);
  }
  [[nodiscard]] at::Tensor hidden() const {
    return masked ? at::ones({tokens, tokens}, at::kBool).triu(1) : at::Tensor();
  }
};

// One token, numbers that fill no vector and no tile, and several blocks.
const std::vector<AttentionCase>& attention_cases() {
  static const std::vector<AttentionCase> all{
      {.samples = 3, .tokens = 28, .heads = 4, .features = 16},
      {.samples = 2, .tokens = 28, .heads = 2, .features = 16, .masked = true},
      {.samples = 2, .tokens = 1, .heads = 3, .features = 5},
      {.samples = 1, .tokens = 1, .heads = 1, .features = 1, .masked = true},
      {.samples = 5, .tokens = 2, .heads = 1, .features = 33, .masked = true},
      {.samples = 1, .tokens = 7, .heads = 2, .features = 3},
      {.samples = 2, .tokens = 15, .heads = 3, .features = 4, .masked = true},
      {.samples = 2, .tokens = 16, .heads = 1, .features = 8},
      {.samples = 1, .tokens = 17, .heads = 2, .features = 24, .masked = true},
      {.samples = 2, .tokens = 31, .heads = 2, .features = 17},
      {.samples = 1, .tokens = 32, .heads = 2, .features = 64, .masked = true},
      {.samples = 2, .tokens = 33, .heads = 2, .features = 15, .masked = true},
      {.samples = 1, .tokens = 64, .heads = 1, .features = 31},
      {.samples = 1, .tokens = 97, .heads = 2, .features = 12, .masked = true}};
  return all;
}

std::string name_of(const AttentionCase& c) {
  return ::testing::PrintToString(std::vector{c.samples, c.tokens, c.heads, c.features}) +
         (c.masked ? " masked" : "");
}

// Output, and gradient by the projection.
struct Attended {
  at::Tensor output;
  at::Tensor gradient;
};

Attended attended(const ReplacedOperators& operators, const AttentionCase& c,
                  const at::Tensor& projection, const at::Tensor& gradient) {
  const OperatorScope scope(operators);
  const at::Tensor leaf = projection.detach().requires_grad_();
  const at::Tensor output = attention_of(leaf, c.heads, c.hidden());
  output.backward(gradient);
  return {output.detach(), leaf.grad()};
}
Attended attended(const ReplacedOperators& operators, const AttentionCase& c) {
  return attended(operators, c, c.projection(), c.gradient());
}

void expect_equal(const Attended& actual, const Attended& expected) {
  EXPECT_TRUE(at::equal(actual.output, expected.output));
  EXPECT_TRUE(at::equal(actual.gradient, expected.gradient));
}

// The gradients of queries, keys and values are compared one by one: they differ in size.
TEST(Attention, IsThatOfDoublesRounded) {
  for (const AttentionCase& c : attention_cases()) {
    SCOPED_TRACE(name_of(c));
    const Attended exact = attended(ReplacedOperators::none(), c, c.projection().to(at::kDouble),
                                    c.gradient().to(at::kDouble));
    const Attended ours = attended({}, c);
    EXPECT_LT(relative_error(ours.output, exact.output), kAttentionTolerance);
    const auto parts = exact.gradient.chunk(3, 2);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const at::Tensor part = ours.gradient.chunk(3, 2)[i];
      // With one token, those of queries and keys are rounding errors.
      const double size = std::max(parts[i].abs().max().item<double>(), 0.1);
      EXPECT_LT((part - parts[i]).abs().max().item<double>() / size, 2 * kAttentionTolerance) << i;
    }
  }
}

// The slope along a direction, by central differences in double.
TEST(Attention, HasTheGradientOfDifferences) {
  for (const bool masked : {false, true}) {
    const AttentionCase c{.samples = 2, .tokens = 9, .heads = 2, .features = 5, .masked = masked};
    const at::Tensor gradient = attended({}, c).gradient.to(at::kDouble);
    for (std::uint64_t seed = 10; seed < 20; ++seed) {
      const at::Tensor direction = random_tensor(gradient.sizes(), seed).to(at::kDouble);
      const auto value_at = [&](double step) {
        const at::Tensor place = c.projection().to(at::kDouble) + step * direction;
        return (attention_of(place, c.heads, c.hidden()) * c.gradient()).sum().item<double>();
      };
      constexpr double kStep = 1e-5;
      const double slope = (value_at(kStep) - value_at(-kStep)) / (2 * kStep);
      EXPECT_NEAR((gradient * direction).sum().item<double>(), slope, 2e-5);
    }
  }
}

// --- the order of sums ---

namespace plain {

#include "base/machine/vector_functions.inc"

}  // namespace plain

namespace fused {

#define RUBATO_HAS_FMA
#include "base/machine/vector_functions.inc"
#undef RUBATO_HAS_FMA

}  // namespace fused

// Arithmetic of CPUs without FMA, unless this one always has it, and of those with it.
struct Plain {
  static float multiply_add(float a, float b, float c) { return plain::multiply_add(a, b, c); }
  static float exp(float x) { return plain::exp_of(x); }
};
struct Fused {
  static float multiply_add(float a, float b, float c) { return fused::multiply_add(a, b, c); }
  static float exp(float x) { return fused::exp_of(x); }
};

// A sum of products, one after the other.
template <class Math, class Left, class Right>
float chain(std::int64_t begin, std::int64_t end, const Left& left, const Right& right) {
  float sum = 0;
  for (std::int64_t k = begin; k < end; ++k) sum = Math::multiply_add(left(k), right(k), sum);
  return sum;
}
// The same in blocks of queries.
template <class Math, class Left, class Right>
float chain_of_blocks(std::int64_t queries, const Left& left, const Right& right) {
  float sum = 0;
  for (std::int64_t first = 0; first < queries; first += attention::kBlock) {
    sum += chain<Math>(first, std::min(first + attention::kBlock, queries), left, right);
  }
  return sum;
}

// As attention_kernels.hpp says, one head after the other and one value after the other.
template <class Math>
Attended by_definition(const AttentionCase& c) {
  const at::Tensor projection = c.projection().view({c.samples, c.tokens, 3, c.heads, c.features});
  const at::Tensor of_output = c.gradient().view({c.samples, c.tokens, c.heads, c.features});
  at::Tensor output = at::zeros_like(of_output);
  at::Tensor gradient = at::zeros_like(projection);
  const std::int64_t n = c.tokens;
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.features)));
  for (std::int64_t sample = 0; sample < c.samples; ++sample) {
    for (std::int64_t head = 0; head < c.heads; ++head) {
      const at::Tensor matrices = projection.select(0, sample).select(2, head);
      const at::Tensor q = matrices.select(1, 0).mul(scale);
      const auto queries = q.accessor<float, 2>();
      const at::Tensor all = matrices.contiguous();
      const auto of_head = all.accessor<float, 3>();
      const at::Tensor g = of_output.select(0, sample).select(1, head);
      const auto outputs = g.accessor<float, 2>();
      const auto key = [&](std::int64_t j, std::int64_t f) { return of_head[j][1][f]; };
      const auto value = [&](std::int64_t j, std::int64_t f) { return of_head[j][2][f]; };
      at::Tensor weights = at::zeros({n, n});
      at::Tensor of_scores = at::zeros({n, n});
      auto p = weights.accessor<float, 2>();
      auto s = of_scores.accessor<float, 2>();
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t seen = c.masked ? i + 1 : n;
        float most = -std::numeric_limits<float>::infinity();
        for (std::int64_t j = 0; j < seen; ++j) {
          p[i][j] = chain<Math>(
              0, c.features, [&](auto f) { return key(j, f); },
              [&](auto f) { return queries[i][f]; });
          most = std::max(most, p[i][j]);
        }
        float sum = 0;
        for (std::int64_t j = 0; j < seen; ++j) {
          p[i][j] = p[i][j] - most < -87 ? 0 : Math::exp(p[i][j] - most);
          sum += p[i][j];
        }
        for (std::int64_t j = 0; j < seen; ++j) p[i][j] *= 1 / sum;
        for (std::int64_t j = 0; j < n; ++j) {
          s[i][j] = chain<Math>(
              0, c.features, [&](auto f) { return value(j, f); },
              [&](auto f) { return outputs[i][f]; });
        }
        const float dot = chain<Math>(
            0, n, [&](auto j) { return p[i][j]; }, [&](auto j) { return s[i][j]; });
        for (std::int64_t j = 0; j < n; ++j) s[i][j] = p[i][j] * (s[i][j] - dot);
      }
      for (std::int64_t t = 0; t < n; ++t) {
        for (std::int64_t f = 0; f < c.features; ++f) {
          const auto put = [&](int part, float number) {
            gradient.accessor<float, 5>()[sample][t][part][head][f] = number;
          };
          output.accessor<float, 4>()[sample][t][head][f] = chain<Math>(
              0, n, [&](auto j) { return p[t][j]; }, [&](auto j) { return value(j, f); });
          put(0, scale *
                     chain<Math>(
                         0, n, [&](auto j) { return s[t][j]; }, [&](auto j) { return key(j, f); }));
          put(1, chain_of_blocks<Math>(
                     n, [&](auto i) { return s[i][t]; }, [&](auto i) { return queries[i][f]; }));
          put(2, chain_of_blocks<Math>(
                     n, [&](auto i) { return p[i][t]; }, [&](auto i) { return outputs[i][f]; }));
        }
      }
    }
  }
  return {output.view_as(c.gradient()), gradient.view_as(c.projection())};
}

Attended by_kernels(const attention::Kernels& kernels, const AttentionCase& c) {
  const attention::Shape shape{
      .samples = c.samples, .tokens = c.tokens, .heads = c.heads, .features = c.features};
  const at::Tensor projection = c.projection();
  const at::Tensor hidden = c.hidden();
  const at::Tensor gradient = c.gradient();
  const auto data = [](const at::Tensor& tensor) { return static_cast<float*>(tensor.data_ptr()); };
  // What is read before it was written would be seen.
  const at::Tensor weights = at::full({kernels.weights(shape)}, std::nan(""));
  const at::Tensor scratch = at::full({kernels.scratch(shape)}, std::nan(""));
  Attended result{at::empty_like(gradient), at::empty_like(projection)};
  kernels.forward(shape,
                  {.projection = data(projection),
                   .hidden = c.masked ? static_cast<const bool*>(hidden.data_ptr()) : nullptr,
                   .output = data(result.output),
                   .weights = data(weights),
                   .scratch = data(scratch)});
  scratch.fill_(std::nan(""));
  kernels.backward(shape, {.gradient = data(gradient),
                           .projection = data(projection),
                           .weights = data(weights),
                           .projection_gradient = data(result.gradient),
                           .scratch = data(scratch)});
  return result;
}

TEST(Attention, AddsInOneOrderOnEveryCpu) {
  for (const AttentionCase& c : attention_cases()) {
    SCOPED_TRACE(name_of(c));
    expect_equal(by_kernels(attention::base_kernels(), c), by_definition<Plain>(c));
    const Attended expected = by_definition<Fused>(c);
    for (const auto& [set, kernels] :
         {std::pair{InstructionSet::avx2, attention::avx2_kernels()},
          std::pair{InstructionSet::avx512, attention::avx512_kernels()}}) {
      if (cpu_instruction_set() >= set) expect_equal(by_kernels(kernels, c), expected);
    }
  }
}

// --- what it takes ---

TEST(Attention, OfASampleDependsOnNoOther) {
  const AttentionCase many{.samples = 9, .tokens = 19, .heads = 2, .features = 6, .masked = true};
  const Attended all = attended({}, many);
  for (std::int64_t sample = 0; sample < many.samples; ++sample) {
    const Attended one = attended({}, many, many.projection().slice(0, sample, sample + 1),
                                  many.gradient().slice(0, sample, sample + 1));
    expect_equal(
        one, {all.output.slice(0, sample, sample + 1), all.gradient.slice(0, sample, sample + 1)});
  }
}

// Not even if it is infinite, or has by far the largest score.
TEST(Attention, GivesHiddenTokensNoWeight) {
  const AttentionCase c{.samples = 1, .tokens = 40, .heads = 1, .features = 4, .masked = true};
  const at::Tensor projection = c.projection();
  const at::Tensor gradient = c.gradient();
  gradient.slice(1, 36).zero_();
  const Attended before = attended({}, c, projection, gradient);
  const at::Tensor changed = projection.clone();
  changed.slice(1, 36).mul_(1e10);
  const Attended after = attended({}, c, changed, gradient);
  EXPECT_TRUE(at::equal(after.output.slice(1, 0, 36), before.output.slice(1, 0, 36)));
  EXPECT_TRUE(at::equal(after.gradient.slice(1, 0, 36), before.gradient.slice(1, 0, 36)));
  EXPECT_EQ(after.gradient.slice(1, 36).abs().max().item<float>(), 0);
}

TEST(Attention, PassesOnWhatIsNotFinite) {
  const AttentionCase c{.samples = 2, .tokens = 20, .heads = 1, .features = 4};
  at::Tensor projection = c.projection();
  // A key of the first sample.
  projection[0][3][5] = std::nan("");
  const at::Tensor output = attended({}, c, projection, c.gradient()).output;
  EXPECT_TRUE(output[0].isnan().all().item<bool>());
  EXPECT_FALSE(output[1].isnan().any().item<bool>());
  // A query that sees nothing.
  const ReplacedOperators all;
  const OperatorScope scope(all);
  at::Tensor hidden = at::zeros({20, 20}, at::kBool);
  hidden[7].fill_(true);
  const at::Tensor blind = attention_of(c.projection(), 1, hidden);
  EXPECT_TRUE(blind.select(1, 7).isnan().all().item<bool>());
  EXPECT_FALSE(blind.slice(1, 8).isnan().any().item<bool>());
}

// It is ours: libtorch's has other bits.
TEST(Attention, TakesWhatItSays) {
  const AttentionCase c{.samples = 4, .tokens = 28, .heads = 4, .features = 16, .masked = true};
  const ReplacedOperators none = ReplacedOperators::none();
  const Attended ours = attended({}, c);
  const Attended theirs = attended(none, c);
  EXPECT_FALSE(at::equal(ours.output, theirs.output));
  EXPECT_FALSE(at::equal(ours.gradient, theirs.gradient));
  expect_equal(attended({.attention = false}, c), theirs);
  const at::Tensor wide = c.projection().to(at::kDouble);
  const at::Tensor wide_gradient = c.gradient().to(at::kDouble);
  expect_equal(attended({}, c, wide, wide_gradient), attended(none, c, wide, wide_gradient));
  // A projection that lies otherwise is libtorch's, a gradient is brought into order.
  const at::Tensor strided = c.projection().transpose(0, 1).contiguous().transpose(0, 1);
  EXPECT_LT(relative_error(attended({}, c, strided, c.gradient()).gradient, theirs.gradient),
            kAttentionTolerance);
  const at::Tensor other = c.gradient().transpose(0, 1).contiguous().transpose(0, 1);
  expect_equal(attended({}, c, c.projection(), other), ours);
  const at::NoGradGuard no_grad;
  const ReplacedOperators all;
  const OperatorScope scope(all);
  EXPECT_TRUE(at::equal(attention_of(c.projection(), c.heads, c.hidden()), ours.output));
}

}  // namespace
}  // namespace rubato
