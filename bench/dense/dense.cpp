// The products of a network with a hidden layer, forward and backward, on one thread: rubato's
// kernels beside Eigen's own products, both for the same instruction set (docs/adr/0063).
// Interleave them, as the machine drifts:
//
//   bench_dense --benchmark_repetitions=9 --benchmark_enable_random_interleaving
//   --benchmark_report_aggregates_only

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
#include "loop/eigen/kernels/aligned_values.hpp"
#include "loop/eigen/kernels/dense_kernels.hpp"

namespace {

using rubato::AlignedValues;
using rubato_bench::Step;

struct Sizes {
  std::ptrdiff_t samples;
  std::ptrdiff_t inputs;
  std::ptrdiff_t hidden;
  std::ptrdiff_t outputs;
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

void by_rubato(benchmark::State& state, const Sizes& sizes,
               const rubato::dense::Kernels<float>& kernels) {
  const auto [samples, inputs, hidden, outputs] = sizes;
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
                                          .inputs = x.data(),
                                          .outputs = pointers.data(),
                                          .scratch = scratch.data(),
                                          .packed = packed.data()};
  for ([[maybe_unused]] auto _ : state) {
    kernels.forward(batch);
    kernels.backward(batch, gradient.data());
    benchmark::ClobberMemory();
  }
}

void by_eigen(benchmark::State& state, const Sizes& sizes, void (*step)(const Step&)) {
  const auto [samples, inputs, hidden, outputs] = sizes;
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

}  // namespace

int main(int argc, char** argv) {
  add("base", rubato::dense::base_kernels<float>(), rubato_bench::eigen_step_base);
  if (rubato::cpu_instruction_set() >= rubato::InstructionSet::avx2) {
    add("AVX2", rubato::dense::avx2_kernels<float>(), rubato_bench::eigen_step_avx2);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
