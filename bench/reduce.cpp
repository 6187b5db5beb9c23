// Strategies for summing a buffer of every core, as `rubato bench reduce` measures them, on two
// threads. Counters: buffer bytes per second, and bytes that the strategy moves per second.

#include <memory>
#include <string>

#include <benchmark/benchmark.h>

#include <rubato/core/stopwatch.hpp>
#include <rubato/runtime/workers.hpp>

#include "lab/contestant.hpp"

namespace {

using namespace rubato::lab;

constexpr int kThreads = 2;

void reduce(benchmark::State& state, const std::string& strategy, const ReduceTask& task) {
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
      benchmark::Counter(runs * contestant->bytes_moved(), benchmark::Counter::kIsRate);
}

}  // namespace

int main(int argc, char** argv) {
  for (const bool fused : {false, true}) {
    for (const auto name : strategy_names(fused)) {
      for (const std::size_t size : {22'000U, 1'000'000U, 25'557'032U}) {
        for (const std::int64_t cores : {2, 8}) {
          const std::string strategy(name);
          const std::string title = "reduce/" + strategy + "/cores:" + std::to_string(cores) +
                                    "/size:" + std::to_string(size) + (fused ? "/fused" : "");
          const ReduceTask task{.cores = cores, .size = size, .fused = fused};
          benchmark::RegisterBenchmark(title.c_str(), [=](benchmark::State& state) {
            reduce(state, strategy, task);
          })->UseManualTime();
        }
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
