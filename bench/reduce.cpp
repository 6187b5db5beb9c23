// Measures the strategies of `rubato bench reduce` for summing a buffer of every core, on two
// threads. Counters: buffer bytes per second, and bytes that the strategy moves per second.
// Interleave them, as the machine drifts:
//
//   bench_reduce --benchmark_filter=cores:8/size:22000/fused:0 --benchmark_repetitions=9
//     --benchmark_enable_random_interleaving --benchmark_report_aggregates_only

#include <cstdint>
#include <string>

#include <benchmark/benchmark.h>

#include <rubato/loop/workers.hpp>

#include "base/core/seconds.hpp"
#include "runs/lab/contestants.hpp"

namespace {

using namespace rubato::lab;

constexpr int kThreads = 2;

// The strategy's number is its index in strategy_names(); the label has its name.
void reduce(benchmark::State& state) {
  const ReduceTask task{.cores = state.range(1),
                        .size = static_cast<std::size_t>(state.range(2)),
                        .fused = state.range(3) != 0};
  const auto strategy = strategy_names(task.fused)[static_cast<std::size_t>(state.range(0))];
  rubato::Workers workers(kThreads);
  const auto contestant = make_contestant(strategy, task, workers);
  const Arrivals at_once(static_cast<std::size_t>(task.cores), 0.0);
  for (auto _ : state) {
    contestant->prepare();
    const rubato::Stopwatch stopwatch;
    contestant->run(at_once);
    state.SetIterationTime(stopwatch.seconds());
  }
  const auto runs = static_cast<double>(state.iterations());
  state.counters["buffer"] = benchmark::Counter(
      runs * static_cast<double>(task.size * sizeof(float)), benchmark::Counter::kIsRate);
  state.counters["moved"] =
      benchmark::Counter(runs * bytes_moved_by(strategy, task), benchmark::Counter::kIsRate);
  state.SetLabel(std::string(strategy));
}

void every_task(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"strategy", "cores", "size", "fused"});
  for (const bool fused : {false, true}) {
    const auto strategies = static_cast<std::int64_t>(strategy_names(fused).size());
    for (const std::int64_t size : {22'000, 1'000'000, 25'557'032}) {
      for (const std::int64_t cores : {2, 8}) {
        for (std::int64_t strategy = 0; strategy < strategies; ++strategy) {
          benchmark->Args({strategy, cores, size, fused ? 1 : 0});
        }
      }
    }
  }
}
BENCHMARK(reduce)->Apply(every_task)->UseManualTime();

}  // namespace
