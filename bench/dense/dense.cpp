// Compares rubato's kernels with Eigen's own products for a network with a hidden layer, forward
// and backward, on one thread and for the same instruction set (docs/adr/0063). Interleave them, as
// the machine drifts:
//
//   bench_dense --benchmark_repetitions=9 --benchmark_enable_random_interleaving
//   --benchmark_report_aggregates_only
//
// Names with "4x32" stand for four minibatches of 32 samples, computed in one pass, or one after
// the other with the sum of their gradients (docs/adr/0065).

#include <algorithm>
#include <cstddef>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "base/machine/instruction_set.hpp"
#include "eigen_step.hpp"
#include "loop/eigen/dense_parameters.hpp"
#include "loop/eigen/kernels/dense_kernels.hpp"

namespace {

using rubato::AlignedValues;
using rubato_bench::Step;

struct Sizes {
  std::ptrdiff_t samples;
  std::ptrdiff_t inputs;
  std::ptrdiff_t hidden;
  std::ptrdiff_t outputs;
  std::ptrdiff_t minibatches = 1;

  // The number of multiplications and additions, forward and backward.
  [[nodiscard]] double operations() const {
    return 2.0 * static_cast<double>(samples * (2 * inputs * hidden + 3 * hidden * outputs));
  }
};

std::ptrdiff_t padded(std::ptrdiff_t columns) {
  constexpr std::ptrdiff_t kStep = rubato::dense::kRowStep;
  return (columns + kStep - 1) / kStep * kStep;
}

AlignedValues<float> drawn(std::ptrdiff_t size) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal(0, 0.05F);
  AlignedValues<float> values(static_cast<std::size_t>(size));
  for (float& value : values.values()) value = normal(generator);
  return values;
}

AlignedValues<float> zeros(std::ptrdiff_t size) {
  return AlignedValues<float>(static_cast<std::size_t>(size));
}

void count_operations(benchmark::State& state, const Sizes& sizes) {
  state.counters["FLOP"] =
      benchmark::Counter(sizes.operations(), benchmark::Counter::kIsIterationInvariantRate);
}

// Computes all minibatches in `passes` passes, whose gradients are added.
void by_rubato(benchmark::State& state, const Sizes& sizes,
               const rubato::dense::Kernels<float>& kernels, std::ptrdiff_t passes = 1) {
  const auto [all_samples, inputs, hidden, outputs, minibatches] = sizes;
  const std::ptrdiff_t samples = all_samples / passes;
  const std::ptrdiff_t first = padded(hidden * inputs);
  const std::ptrdiff_t second = first + padded(outputs * hidden);
  const std::vector<rubato::dense::Layer> layers{
      {.inputs = inputs,
       .outputs = hidden,
       .weights = 0,
       .biases = static_cast<std::size_t>(second)},
      {.inputs = hidden,
       .outputs = outputs,
       .weights = static_cast<std::size_t>(first),
       .biases = static_cast<std::size_t>(second + padded(hidden))}};
  const std::ptrdiff_t all = second + padded(hidden) + padded(outputs);
  const AlignedValues<float> parameters = drawn(all);
  const AlignedValues<float> gradient = zeros(all);
  const AlignedValues<float> sum = zeros(all);
  const AlignedValues<float> x = drawn(samples * inputs);
  const AlignedValues<float> h = zeros(samples * padded(hidden));
  const AlignedValues<float> z = zeros(samples * padded(outputs));
  const AlignedValues<float> scratch = zeros(samples * padded(hidden));
  const AlignedValues<float> packed = zeros(rubato::dense::kPackedValues);
  const std::vector<float*> pointers{h.data(), z.data()};
  const rubato::dense::Batch<float> batch{.layers = layers.data(),
                                          .layer_count = 2,
                                          .parameters = parameters.data(),
                                          .samples = samples,
                                          .minibatches = minibatches / passes,
                                          .inputs = x.data(),
                                          .outputs = pointers.data(),
                                          .scratch = scratch.data(),
                                          .packed = packed.data()};
  for ([[maybe_unused]] auto _ : state) {
    for (std::ptrdiff_t pass = 0; pass < passes; ++pass) {
      if (passes > 1) std::ranges::fill(gradient.values(), 0.0F);
      kernels.forward(batch);
      kernels.backward(batch, gradient.data());
      if (pass == 0) continue;
      for (std::size_t i = 0; i < sum.size(); ++i) sum.data()[i] += gradient.data()[i];
    }
    benchmark::ClobberMemory();
  }
  count_operations(state, sizes);
}

void by_eigen(benchmark::State& state, const Sizes& sizes, void (*step)(const Step&)) {
  const auto [samples, inputs, hidden, outputs, minibatches] = sizes;
  const AlignedValues<float> x = drawn(samples * inputs);
  const AlignedValues<float> v = drawn(hidden * inputs);
  const AlignedValues<float> w = drawn(outputs * hidden);
  const AlignedValues<float> h = zeros(samples * hidden);
  const AlignedValues<float> z = zeros(samples * outputs);
  const AlignedValues<float> by_h = zeros(samples * hidden);
  const AlignedValues<float> first = zeros(hidden * inputs);
  const AlignedValues<float> second = zeros(outputs * hidden);
  const Step all{.samples = samples,
                 .inputs = inputs,
                 .hidden = hidden,
                 .outputs = outputs,
                 .x = x.data(),
                 .first_weights = v.data(),
                 .second_weights = w.data(),
                 .h = h.data(),
                 .z = z.data(),
                 .by_h = by_h.data(),
                 .first_gradient = first.data(),
                 .second_gradient = second.data()};
  for ([[maybe_unused]] auto _ : state) {
    step(all);
    benchmark::ClobberMemory();
  }
  count_operations(state, sizes);
}

void add(const std::string& set, const rubato::dense::Kernels<float>& kernels,
         void (*step)(const Step&)) {
  for (const Sizes& sizes : {Sizes{8, 20, 16, 3}, Sizes{32, 784, 128, 10}, Sizes{32, 784, 256, 128},
                             Sizes{32, 784, 1024, 1024}, Sizes{512, 784, 1024, 1024}}) {
    const std::string name = fmt::format("{}x{}-{}-{}/{}", sizes.samples, sizes.inputs,
                                         sizes.hidden, sizes.outputs, set);
    benchmark::RegisterBenchmark((name + "/rubato").c_str(), [=](benchmark::State& state) {
      by_rubato(state, sizes, kernels);
    });
    benchmark::RegisterBenchmark((name + "/Eigen").c_str(),
                                 [=](benchmark::State& state) { by_eigen(state, sizes, step); });
  }
}

// Adds benchmarks of several minibatches of 32 samples.
void add_several(const std::string& set, const rubato::dense::Kernels<float>& kernels) {
  for (const std::ptrdiff_t minibatches : {4, 32}) {
    for (const auto& [hidden, outputs] : {std::pair(128, 10), std::pair(1024, 1024)}) {
      const Sizes sizes{32 * minibatches, 784, hidden, outputs, minibatches};
      const std::string name = fmt::format("{}x32x784-{}-{}/{}", minibatches, hidden, outputs, set);
      benchmark::RegisterBenchmark((name + "/one-pass").c_str(), [=](benchmark::State& state) {
        by_rubato(state, sizes, kernels);
      });
      benchmark::RegisterBenchmark((name + "/one-by-one").c_str(), [=](benchmark::State& state) {
        by_rubato(state, sizes, kernels, minibatches);
      });
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  add("base", rubato::dense::base_kernels<float>(), rubato_bench::eigen_step_base);
  add_several("base", rubato::dense::base_kernels<float>());
  if (rubato::cpu_instruction_set() >= rubato::InstructionSet::avx2) {
    add("AVX2", rubato::dense::avx2_kernels<float>(), rubato_bench::eigen_step_avx2);
    add_several("AVX2", rubato::dense::avx2_kernels<float>());
  }
  if (rubato::cpu_instruction_set() >= rubato::InstructionSet::avx512) {
    add_several("AVX-512", rubato::dense::avx512_kernels<float>());
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
