// Training throughput of the networks of models.hpp at minibatch 32.
//
// whole_step: steps of 8 minibatches of each network through the trainer: gather, forward,
// backward, reduction, rule, update and metrics. Counters: samples_per_second; outside, which is
// the share of the threads' time that is neither forward nor backward.
//
// technique: the same for mnist-cnn on 8 cores and 2 threads, with rules and techniques that cost
// time, and with `linear`, which costs none:
//     bench_train_throughput --benchmark_filter=technique --benchmark_repetitions=9
//       --benchmark_enable_random_interleaving --benchmark_report_aggregates_only
//
// step_cost: the time for summing gradients, checking the sum and updating in a step of a model as
// large as ResNet-50.
//
// dense_step: the perceptron of wide-mlp in rubato's own engine, which `rubato train --model
// mlp:hidden=1024/1024` uses: steps of 8 cores with the given number of minibatches each.
//
// forward_backward: an upper bound for each network: forward and backward alone, on one thread, and
// on two that share nothing.
//
// one_pass: the same on one thread with the given number of minibatches at once, which is the most
// that a network could gain if a core computed its minibatches together.
//
// bench/pytorch/compare runs both, and compares them with what a user would pick instead.

#include <algorithm>
#include <filesystem>
#include <optional>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <rubato/base/machine.hpp>
#include <rubato/libtorch/module.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/loop/eigen.hpp>
#include <rubato/runs/records.hpp>

#include "base/core/seconds.hpp"
#include "libtorch/operators/operators.hpp"
#include "models.hpp"
#include "runs/lab/contestants.hpp"

namespace {

using rubato::Trace;

constexpr std::int64_t kMinibatch = 32;
constexpr std::int64_t kMinibatchesInStep = 8;

// The number of samples for an epoch of about a second.
std::int64_t samples_for(std::string_view model) {
  if (model == "mnist-cnn") return 16384;
  if (model == "wide-mlp") return 8192;
  return model == "transformer" ? 4096 : 1024;
}

rubato::TensorDataset random_images(std::int64_t count) {
  return {at::randn({count, 1, 28, 28}), at::randint(10, {count}, at::kLong)};
}

// Sums up the time that steps spend in forward and backward.
class Shares final : public rubato::Observer {
 public:
  void on_step(rubato::Training&, const rubato::StepRecord& step) override {
    compute_ += step.seconds.compute;
  }
  [[nodiscard]] double outside(int threads, double train_seconds) const {
    return 1 - compute_ / (threads * train_seconds);
  }

 private:
  double compute_ = 0;
};

// Trains one epoch in each iteration.
void train(benchmark::State& state, rubato::TrainOptions options,
           std::string_view model = "mnist-cnn", const rubato::TorchOptions& torch = {}) {
  options.epochs = 1;
  options.minibatch_size = kMinibatch;
  const std::int64_t samples = samples_for(model);
  const auto dataset = random_images(samples);
  const auto metrics_file =
      std::filesystem::temp_directory_path() / "rubato_bench_train_throughput.jsonl";
  double seconds = 0;
  double outside = 0;
  for (auto _ : state) {
    rubato::TorchTrainer trainer(rubato::bench::model(model), rubato::nll_loss(), dataset,
                                 Trace::constant(kMinibatch * kMinibatchesInStep), options, torch);
    trainer.add_observer<rubato::MetricsWriter>(metrics_file);
    const auto shares = trainer.add_observer<Shares>();
    const double train_seconds = trainer.fit().train_seconds;
    state.SetIterationTime(train_seconds);
    seconds += train_seconds;
    outside += shares->outside(options.threads, train_seconds);
  }
  std::filesystem::remove(metrics_file);
  state.counters["samples_per_second"] =
      static_cast<double>(samples * static_cast<std::int64_t>(state.iterations())) / seconds;
  state.counters["outside"] = outside / static_cast<double>(state.iterations());
}

void whole_step(benchmark::State& state, std::string_view model) {
  rubato::TrainOptions options;
  options.cores = state.range(0);
  options.threads = static_cast<int>(state.range(1));
  train(state, options, model);
}

void dense_step(benchmark::State& state) {
  constexpr std::int64_t kCores = 8;
  constexpr std::int64_t kSamples = 16384;
  constexpr std::int64_t kInputs = 784;
  rubato::TrainOptions options{.epochs = 1, .minibatch_size = kMinibatch, .cores = kCores};
  options.threads = static_cast<int>(state.range(1));
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  std::vector<float> inputs(static_cast<std::size_t>(kSamples * kInputs));
  std::ranges::generate(inputs, [&] { return normal(generator); });
  std::vector<std::int64_t> classes(static_cast<std::size_t>(kSamples));
  std::ranges::generate(classes, [&] { return static_cast<std::int64_t>(generator() % 10); });
  const auto dataset =
      rubato::DenseDataset<float>::classified(std::move(inputs), std::move(classes), 10);
  double seconds = 0;
  for ([[maybe_unused]] auto _ : state) {
    rubato::Trainer trainer(
        rubato::multi_layer_perceptron(dataset,
                                       rubato::DenseNetworkOptions<float>{.hidden = {1024, 1024}}),
        Trace::constant(kMinibatch * kCores * state.range(0)), options);
    const double train_seconds = trainer.fit().train_seconds;
    state.SetIterationTime(train_seconds);
    seconds += train_seconds;
  }
  state.counters["samples_per_second"] =
      static_cast<double>(kSamples * static_cast<std::int64_t>(state.iterations())) / seconds;
}
BENCHMARK(dense_step)
    ->ArgNames({"minibatches", "threads"})
    ->ArgsProduct({{1, 4, 32}, {1, 2}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

void technique(benchmark::State& state, void (*use)(rubato::TrainOptions&)) {
  rubato::TrainOptions options;
  options.threads = 2;
  use(options);
  train(state, options);
}
BENCHMARK_CAPTURE(technique, linear, [](auto&) {}) -> UseManualTime()
    -> Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(technique, adascale, [](auto& o) { o.rule = "adascale"; }) -> UseManualTime()
    -> Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(technique, clip_norm, [](auto& o) { o.clip_norm = 1; }) -> UseManualTime()
    -> Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(technique, lars, [](auto& o) { o.optimizer.method = rubato::LarsOptions{}; })
    -> UseManualTime() -> Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(technique, adam, [](auto& o) { o.optimizer = {.method = rubato::AdamOptions{}}; })
    -> UseManualTime() -> Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(technique, lookahead, [](auto& o) { o.lookahead = rubato::LookaheadOptions(); })
    -> UseManualTime() -> Unit(benchmark::kMillisecond);

void precision(benchmark::State& state, rubato::Precision precision) {
  rubato::TrainOptions options;
  options.threads = 2;
  train(state, options, "mnist-cnn", {.precision = precision});
}
BENCHMARK_CAPTURE(precision, full, rubato::Precision::full)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(precision, bf16, rubato::Precision::bf16)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(precision, fp16, rubato::Precision::fp16)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// Measures the cost of reproducibility: the reducers that are reproducible (auto, tree), and those
// that are not.
void reducer(benchmark::State& state, const char* name) {
  rubato::TrainOptions options;
  options.threads = 2;
  options.exact = false;
  if (std::ranges::find(rubato::lab::baseline_names(), name) ==
      rubato::lab::baseline_names().end()) {
    options.reduce = name;
  } else {
    options.own_reducer = {.name = name, .of_float = [name](const auto& size, auto& workers) {
                             return rubato::lab::make_baseline(name, size, workers);
                           }};
  }
  train(state, options);
}
BENCHMARK_CAPTURE(reducer, auto, "auto") -> UseManualTime() -> Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(reducer, tree, "tree")->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(reducer, mutex, "mutex")->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(reducer, atomic, "atomic")->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(reducer, tbb, "tbb")->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(reducer, ring, "ring")->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(reducer, sequential, "sequential")
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// A model that consists of parameters only.
class Ballast : public torch::nn::Module {
 public:
  explicit Ballast(std::int64_t parameters)
      : weight_(register_parameter("weight", at::zeros({parameters}))) {}
  at::Tensor forward(const at::Tensor& x) { return x.flatten(1) + weight_.mean(); }

 private:
  at::Tensor weight_;
};

// Measures the parts of a step with a model of `parameters` parameters on 8 cores with one
// minibatch each. The counters are milliseconds of wall time.
void step_cost(benchmark::State& state) {
  rubato::TrainOptions options;
  options.epochs = 1;
  options.threads = 2;
  options.minibatch_size = 1;
  const std::int64_t parameters = state.range(0);
  const auto loss = [](const at::Tensor& output, const at::Tensor&) { return output.mean(); };
  constexpr std::int64_t kSteps = 10;
  double reduce = 0;
  double update = 0;
  class Sums final : public rubato::Observer {
   public:
    Sums(double& reduce, double& update) : reduce_(reduce), update_(update) {}
    void on_step(rubato::Training&, const rubato::StepRecord& step) override {
      reduce_ += step.seconds.reduce;
      update_ += step.seconds.update;
    }

   private:
    double& reduce_;
    double& update_;
  };
  for (auto _ : state) {
    rubato::TorchTrainer trainer(rubato::model_factory<Ballast>(parameters), loss,
                                 random_images(kMinibatchesInStep * kSteps),
                                 Trace::constant(kMinibatchesInStep), options);
    trainer.add_observer<Sums>(reduce, update);
    state.SetIterationTime(trainer.fit().train_seconds);
  }
  constexpr double kMilliseconds = 1e3;
  const double steps = static_cast<double>(kSteps * static_cast<std::int64_t>(state.iterations()));
  state.counters["sum_ms"] = reduce / options.threads / steps * kMilliseconds;
  state.counters["check_and_update_ms"] = update / steps * kMilliseconds;
}
BENCHMARK(step_cost)
    ->ArgName("parameters")
    ->Arg(25557032)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

void forward_backward(benchmark::State& state, std::string_view name, std::int64_t batch) {
  rubato::use_one_intra_op_thread();
  const rubato::ReplacedOperators all;
  const rubato::OperatorScope operators(all);
  const auto model = rubato::bench::model(name)();
  const auto loss = rubato::nll_loss();
  const std::int64_t samples = samples_for(name);
  const auto dataset = random_images(samples);
  for (const auto& parameter : model.parameters) {
    parameter.tensor.mutable_grad() = at::zeros_like(parameter.tensor);
  }
  model.set_training(true);
  std::int64_t first = 0;
  // Each thread measures its own time, because versions of Google Benchmark differ in how they time
  // several threads.
  std::optional<rubato::Stopwatch> watch;
  for (auto _ : state) {
    if (!watch) watch.emplace();  // after the barrier at which the threads begin
    const auto inputs = dataset.inputs.narrow(0, first, batch);
    const auto targets = dataset.targets.narrow(0, first, batch);
    loss(model.forward(inputs), targets).backward();
    first = (first + batch) % samples;
  }
  // Google Benchmark adds the rates of the threads.
  state.counters["samples_per_second"] =
      static_cast<double>(batch * static_cast<std::int64_t>(state.iterations())) / watch->seconds();
}

void register_networks() {
  for (const std::string_view name : rubato::bench::model_names()) {
    benchmark::RegisterBenchmark(fmt::format("whole_step/{}", name).c_str(),
                                 [name](benchmark::State& state) { whole_step(state, name); })
        ->ArgNames({"cores", "threads"})
        ->ArgsProduct({{8, 1024}, {1, 2}})
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(fmt::format("one_pass/{}", name).c_str(),
                                 [name](benchmark::State& state) {
                                   forward_backward(state, name, kMinibatch * state.range(0));
                                 })
        ->ArgName("minibatches")
        ->ArgsProduct({{1, 4, 32}})
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(
        fmt::format("forward_backward/{}", name).c_str(),
        [name](benchmark::State& state) { forward_backward(state, name, kMinibatch); })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime()
        ->Threads(1)
        ->Threads(2);
  }
}

}  // namespace

int main(int argc, char** argv) {
  rubato::use_right_kernels(argv);
  register_networks();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
