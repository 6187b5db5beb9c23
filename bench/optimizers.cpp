// Measures the update of 25.6 million parameters (ResNet-50's) on two threads: each of rubato's own
// optimizers, and libtorch's as TorchOptimizer drives it. Interleave them, as the machine drifts:
//
//   bench_optimizers --benchmark_repetitions=9 --benchmark_enable_random_interleaving
//     --benchmark_report_aggregates_only

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>

#include <rubato/base/parse.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/loop/optimizer.hpp>

#include "loop/optim/make_optimizer.hpp"

namespace {

constexpr std::size_t kParameters = 25557032;
// A tensor of ResNet-50 has some 160,000 values.
constexpr std::size_t kTensors = 160;
constexpr int kThreads = 2;

using Optimizer = rubato::FlatOptimizer<float>;

// Parameters and the sum of their gradients.
struct Problem {
  explicit Problem(std::size_t size) : parameters(size), gradient_sum(size) {
    for (std::size_t i = 0; i < size; ++i) {
      const auto phase = static_cast<float>(i % 1000);
      parameters[i] = std::sin(phase);
      gradient_sum[i] = std::cos(phase);
    }
    std::size_t begin = 0;
    for (std::size_t tensor = 1; tensor <= kTensors; ++tensor) {
      const std::size_t end = size * tensor / kTensors;
      layout.layer_ends.push_back(end);
      layout.layer_groups.push_back(0);
      trained.push_back({.array = {.name = fmt::format("{}", tensor),
                                   .type = rubato::ElementType::f32,
                                   .shape = {static_cast<std::int64_t>(end - begin)},
                                   .data = parameters.data() + begin},
                         .end = end});
      begin = end;
    }
  }

  void step(Optimizer& optimizer, rubato::Workers& workers) {
    optimizer.step({.parameters = parameters,
                    .gradient_sum = gradient_sum,
                    .gradient_factor = 0.125F,
                    .rates = {.update_rate = 0.001}},
                   workers);
  }

  std::vector<float> parameters;
  std::vector<float> gradient_sum;
  rubato::ParameterLayout layout;
  std::vector<rubato::TrainedArray> trained;
};

std::unique_ptr<Optimizer> own(const Problem& problem, const rubato::OptimizerMethod& method) {
  return rubato::make_optimizer<float>({.method = method}, problem.layout, {});
}

template <class OfTorch>
std::unique_ptr<Optimizer> libtorchs(const Problem& problem) {
  return std::make_unique<rubato::TorchOptimizer<float>>(
      problem.layout, problem.trained, [](std::vector<torch::optim::OptimizerParamGroup> groups) {
        return std::make_unique<OfTorch>(std::move(groups));
      });
}

using Make = std::function<std::unique_ptr<Optimizer>(const Problem&)>;

// Returns the first parameter of a small problem after three steps.
float after_three_steps(const Make& make) {
  constexpr std::size_t kFew = 10000;
  rubato::Workers workers(kThreads);
  Problem problem(kFew);
  const auto optimizer = make(problem);
  for (int step = 0; step < 3; ++step) problem.step(*optimizer, workers);
  return problem.parameters.front();
}

void update(benchmark::State& state, const Make& make, const Make& other) {
  constexpr float kTolerance = 1e-5F;
  if (!(std::abs(after_three_steps(make) - after_three_steps(other)) < kTolerance)) {
    state.SkipWithError("this optimizer and its counterpart compute different parameters");
    return;
  }
  rubato::Workers workers(kThreads);
  Problem problem(kParameters);
  const auto optimizer = make(problem);
  problem.step(*optimizer, workers);
  for (auto _ : state) problem.step(*optimizer, workers);
}

template <class OfTorch>
void register_pair(const rubato::OptimizerMethod& method) {
  const Make of_rubato = [method](const Problem& problem) { return own(problem, method); };
  const Make of_libtorch = libtorchs<OfTorch>;
  const auto name = rubato::optimizer_name(method);
  const auto enter = [name](std::string_view whose, const Make& make, const Make& other) {
    benchmark::RegisterBenchmark(
        fmt::format("update/{}/{}", name, whose).c_str(),
        [make, other](benchmark::State& state) { update(state, make, other); })
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  };
  enter("own", of_rubato, of_libtorch);
  enter("libtorch", of_libtorch, of_rubato);
}

}  // namespace

int main(int argc, char** argv) {
  // libtorch's operators use as many threads as the workers.
  at::set_num_threads(kThreads);
  register_pair<torch::optim::Adam>(rubato::AdamOptions{});
  register_pair<torch::optim::AdamW>(rubato::AdamOptions{.decoupled = true});
  register_pair<torch::optim::RMSprop>(rubato::RmspropOptions{});
  register_pair<torch::optim::Adagrad>(rubato::AdagradOptions{});
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
