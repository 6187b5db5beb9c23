// Compares rubato's own operators with libtorch's, on one thread, for minibatches of 32 images.
//
//   convolution, max_pool, batch_norm, attention   forward and backward of one operator
//   forward_backward                               of whole networks
//
// Each has a variant /libtorch and one /rubato, to be compared within one run:
//   bench_operators --benchmark_enable_random_interleaving --benchmark_repetitions=9
//     --benchmark_report_aggregates_only
// docs/kernels.md names the variables that select other kernels of the libraries.

#include "libtorch/operators/operators.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/Functions.h>
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <rubato/base/machine.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "models.hpp"

namespace {

using rubato::ReplacedOperators;

constexpr std::int64_t kImages = 32;

struct Shape {
  std::int64_t channels;
  std::int64_t pixels;
  // The following members are used by convolutions alone.
  std::int64_t outputs = 0;
  std::int64_t kernel = 0;
  std::int64_t padding = 0;
};

at::Tensor images(const Shape& shape, bool channels_last) {
  const at::Tensor dense = at::randn({kImages, shape.channels, shape.pixels, shape.pixels});
  return channels_last ? dense.contiguous(at::MemoryFormat::ChannelsLast) : dense;
}

using Compute = std::function<void()>;

Compute convolution(const Shape& s, bool channels_last) {
  const at::Tensor input = images(s, channels_last);
  const at::Tensor weight = at::randn({s.outputs, s.channels, s.kernel, s.kernel});
  const at::Tensor bias = at::randn({s.outputs});
  const std::vector<std::int64_t> padding{s.padding, s.padding};
  const at::Tensor gradient = at::randn_like(
      at::convolution(input, weight, bias, {1, 1}, padding, {1, 1}, false, {0, 0}, 1));
  // The first layer's input needs no gradient.
  const bool inner = s.channels > 1;
  return [=, outputs = s.outputs] {
    at::convolution(input, weight, bias, {1, 1}, padding, {1, 1}, false, {0, 0}, 1);
    at::convolution_backward(gradient, input, weight, at::IntArrayRef{outputs}, {1, 1}, padding,
                             {1, 1}, false, {0, 0}, 1, {inner, true, true});
  };
}

Compute max_pool(const Shape& s, bool channels_last) {
  const at::Tensor input = images(s, channels_last);
  const at::Tensor gradient =
      at::randn_like(std::get<0>(at::max_pool2d_with_indices(input, {2, 2})));
  return [=] {
    const at::Tensor indices = std::get<1>(at::max_pool2d_with_indices(input, {2, 2}));
    at::max_pool2d_with_indices_backward(gradient, input, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false,
                                         indices);
  };
}

Compute batch_norm(const Shape& s, bool channels_last) {
  const at::Tensor input = images(s, channels_last);
  const at::Tensor gradient = at::randn_like(input);
  const at::Tensor ones = at::ones({s.channels});
  return [=] {
    const auto [output, mean, invstd] =
        at::native_batch_norm(input, ones, ones, ones, ones, true, 0.1, 1e-5);
    at::native_batch_norm_backward(gradient, input, ones, ones, ones, mean, invstd, true, 1e-5,
                                   {true, true, true});
  };
}

// Of the built-in transformer's sizes, on rows of images or tokens that see those before them.
Compute attention(std::int64_t tokens, bool masked) {
  constexpr std::int64_t kHeads = 4;
  constexpr std::int64_t kDim = 64;
  const at::Tensor projection = at::randn({kImages, tokens, 3 * kDim}).requires_grad_();
  const at::Tensor gradient = at::randn({kImages, tokens, kDim});
  const at::Tensor hidden = masked ? at::ones({tokens, tokens}, at::kBool).triu(1) : at::Tensor();
  return [=] {
    projection.mutable_grad() = at::Tensor();
    rubato::attention_of(projection, kHeads, hidden).backward(gradient);
  };
}

Compute network(std::string_view name) {
  const auto model = std::make_shared<rubato::Model>(rubato::bench::model(name)());
  for (const auto& parameter : model->parameters) {
    parameter.tensor.mutable_grad() = at::zeros_like(parameter.tensor);
  }
  model->set_training(true);
  const at::Tensor input = at::randn({kImages, 1, 28, 28});
  const at::Tensor target = at::randint(10, {kImages}, at::kLong);
  return [=, loss = rubato::nll_loss()] { loss(model->forward(input), target).backward(); };
}

// A computation that is measured with and without rubato's operators.
struct Case {
  std::string name;
  std::function<Compute()> make;
};

void run(benchmark::State& state, const Case& c, const ReplacedOperators& operators) {
  const rubato::OperatorScope scope(operators);
  const Compute compute = c.make();
  for (auto _ : state) compute();
}

using MakeOperator = Compute (*)(const Shape&, bool);

void add_operator(std::vector<Case>& cases, const char* name, MakeOperator make,
                  std::initializer_list<Shape> shapes) {
  for (const Shape& s : shapes) {
    for (const bool last : {false, true}) {
      std::string title = fmt::format("{}/{}x{}x{}", name, s.channels, s.pixels, s.pixels);
      if (s.outputs > 0) title += fmt::format("_to_{}_by_{}x{}", s.outputs, s.kernel, s.kernel);
      cases.push_back({title + (last ? "/channels_last" : ""), [=] { return make(s, last); }});
    }
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  add_operator(cases, "convolution", convolution,
               {{1, 28, 10, 5, 0},
                {10, 12, 20, 5, 0},
                {3, 32, 64, 3, 1},
                {1, 28, 16, 3, 1},
                {16, 28, 16, 3, 1},
                {32, 14, 32, 3, 1},
                {64, 7, 64, 3, 1},
                {64, 32, 64, 3, 1},
                {128, 16, 128, 3, 1}});
  add_operator(cases, "max_pool", max_pool, {{10, 24}, {20, 8}, {64, 32}});
  add_operator(cases, "batch_norm", batch_norm, {{10, 12}, {20, 4}, {16, 28}, {32, 14}, {64, 7}});
  for (const std::int64_t tokens : {28, 64, 256}) {
    for (const bool masked : {false, true}) {
      cases.push_back({fmt::format("attention/{}{}", tokens, masked ? "/masked" : ""),
                       [=] { return attention(tokens, masked); }});
    }
  }
  for (const std::string_view name : rubato::bench::model_names()) {
    cases.push_back({fmt::format("forward_backward/{}", name), [name] { return network(name); }});
  }
  return cases;
}

}  // namespace

int main(int argc, char** argv) {
  rubato::use_right_kernels(argv);
  rubato::use_one_intra_op_thread();
  const std::vector<Case> cases = all_cases();
  for (const Case& c : cases) {
    for (const bool ours : {false, true}) {
      benchmark::RegisterBenchmark((c.name + (ours ? "/rubato" : "/libtorch")).c_str(),
                                   [&c, ours](benchmark::State& state) {
                                     run(state, c,
                                         ours ? ReplacedOperators() : ReplacedOperators::none());
                                   })
          ->Unit(benchmark::kMicrosecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
