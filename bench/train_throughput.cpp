// Training throughput of the original's MNIST network at minibatch 32.
//
//   whole_step        steps of 8 minibatches through the trainer: gather, forward, backward,
//                     reduction, rule, update and metrics. Counters: samples_per_second; outside:
//                     the share of the threads' time that is neither forward nor backward.
//   technique         the same, on 8 cores and 2 threads, under rules and techniques that cost
//                     something; beside `linear`, which costs nothing:
//                     bench_train_throughput --benchmark_filter=technique --benchmark_repetitions=9
//                       --benchmark_enable_random_interleaving --benchmark_report_aggregates_only
//   forward_backward  the bound: forward and backward alone, on one thread, and on two that share
//                     nothing.
//
// bench/peers/compare runs both beside what a user would pick instead.

#include <filesystem>

#include <ATen/Functions.h>
#include <benchmark/benchmark.h>

#include <rubato/model/builtin_models.hpp>
#include <rubato/report/metrics.hpp>
#include <rubato/train/environment.hpp>
#include <rubato/train/losses.hpp>
#include <rubato/train/trainer.hpp>

namespace {

using rubato::Trace;

constexpr std::int64_t kMinibatch = 32;
constexpr std::int64_t kMinibatchesInStep = 8;
constexpr std::int64_t kSamples = 16384;

rubato::TensorDataset random_images(std::int64_t count) {
  return {at::randn({count, 1, 28, 28}), at::randint(10, {count}, at::kLong)};
}

// Sums up where the time of the steps went.
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

// Trains an epoch in each iteration.
void train(benchmark::State& state, rubato::TrainOptions options) {
  options.epochs = 1;
  options.minibatch_size = kMinibatch;
  const auto dataset = random_images(kSamples);
  const auto metrics_file =
      std::filesystem::temp_directory_path() / "rubato_bench_train_throughput.jsonl";
  double seconds = 0;
  double outside = 0;
  for (auto _ : state) {
    rubato::Trainer trainer(rubato::builtin_model("mnist-cnn", {}), rubato::nll_loss(), dataset,
                            Trace::constant(kMinibatch * kMinibatchesInStep), options);
    trainer.add_observer<rubato::MetricsWriter>(metrics_file);
    const auto shares = trainer.add_observer<Shares>();
    const double train_seconds = trainer.fit().train_seconds;
    state.SetIterationTime(train_seconds);
    seconds += train_seconds;
    outside += shares->outside(options.threads, train_seconds);
  }
  std::filesystem::remove(metrics_file);
  state.counters["samples_per_second"] =
      static_cast<double>(kSamples * static_cast<std::int64_t>(state.iterations())) / seconds;
  state.counters["outside"] = outside / static_cast<double>(state.iterations());
}

void whole_step(benchmark::State& state) {
  rubato::TrainOptions options;
  options.cores = state.range(0);
  options.threads = static_cast<int>(state.range(1));
  train(state, options);
}
BENCHMARK(whole_step)
    ->ArgNames({"cores", "threads"})
    ->Args({8, 1})
    ->Args({8, 2})
    ->Args({1024, 2})
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
BENCHMARK_CAPTURE(technique, lars, [](auto& o) { o.optimizer.kind = rubato::OptimizerKind::lars; })
    -> UseManualTime() -> Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(technique, adam, [](auto& o) {
  o.optimizer = {.kind = rubato::OptimizerKind::adam};
}) -> UseManualTime() -> Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(technique, lookahead, [](auto& o) { o.lookahead = rubato::LookaheadOptions(); })
    -> UseManualTime() -> Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(technique, bf16, [](auto& o) { o.precision = rubato::Precision::bf16; })
    -> UseManualTime() -> Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(technique, fp16, [](auto& o) { o.precision = rubato::Precision::fp16; })
    -> UseManualTime() -> Unit(benchmark::kMillisecond);

// What the same bits cost: the reducers that give them (auto, tree) beside those that do not.
void reducer(benchmark::State& state, const char* name) {
  rubato::TrainOptions options;
  options.threads = 2;
  options.reduce = name;
  options.exact = false;
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

void forward_backward(benchmark::State& state) {
  rubato::use_one_intra_op_thread();
  const auto model = rubato::builtin_model("mnist-cnn", {})();
  const auto loss = rubato::nll_loss();
  const auto dataset = random_images(kSamples);
  for (const auto& parameter : model.parameters) {
    parameter.tensor.mutable_grad() = at::zeros_like(parameter.tensor);
  }
  model.set_training(true);
  std::int64_t first = 0;
  for (auto _ : state) {
    const auto inputs = dataset.inputs.narrow(0, first, kMinibatch);
    const auto targets = dataset.targets.narrow(0, first, kMinibatch);
    loss(model.forward(inputs), targets).backward();
    first = (first + kMinibatch) % kSamples;
  }
  state.counters["samples_per_second"] = benchmark::Counter(
      static_cast<double>(kMinibatch * static_cast<std::int64_t>(state.iterations())),
      benchmark::Counter::kIsRate);
}
BENCHMARK(forward_backward)->Unit(benchmark::kMillisecond)->UseRealTime()->Threads(1)->Threads(2);

}  // namespace
