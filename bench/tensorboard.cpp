// Measures the cost of `--tensorboard`.
//
//   step        encodes the scalars of one step as an event with checksums, and writes it to a file
//   histogram   makes a histogram of a million numbers
//   epoch       trains a perceptron (Eigen, one thread) on the built-in digits for an epoch, with
//               and without an observer; "every_step" has histograms of all parameters and
//               gradients at each step
//
//     bench_tensorboard --benchmark_enable_random_interleaving=true --benchmark_repetitions=9
//       --benchmark_report_aggregates_only=true

#include <array>
#include <cstdint>
#include <filesystem>
#include <random>
#include <span>
#include <vector>

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <rubato/runs/run.hpp>
#include <rubato/runs/tensorboard.hpp>
#include <rubato/runs/workload.hpp>

namespace {

namespace fs = std::filesystem;

fs::path folder() {
  return fs::temp_directory_path() / ("rubato_bench_tensorboard." + std::to_string(getpid()));
}

void step(benchmark::State& state) {
  fs::create_directories(folder());
  {
    rubato::EventFile file(folder() / "events.out.tfevents.0");
    // Most steps have these scalars.
    const std::array<rubato::Scalar, 14> scalars{{{"train/loss", 0.5},
                                                  {"train/lr", 0.1},
                                                  {"train/gain", 2},
                                                  {"train/iterations", 1000},
                                                  {"train/gradient_norm", 3},
                                                  {"train/noise_scale", 200},
                                                  {"step/batch", 256},
                                                  {"step/cores", 8},
                                                  {"step/scale", 2},
                                                  {"seconds/data", 1e-4},
                                                  {"seconds/compute", 1e-2},
                                                  {"seconds/reduce", 1e-4},
                                                  {"seconds/update", 1e-4},
                                                  {"seconds/wall", 1e-2}}};
    std::int64_t index = 0;
    for (auto _ : state) file.write_scalars(index++, scalars);
  }
  fs::remove_all(folder());
}
BENCHMARK(step)->Unit(benchmark::kMicrosecond);

void histogram(benchmark::State& state) {
  constexpr std::size_t kNumbers = 1'000'000;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.1F);
  std::vector<float> numbers(kNumbers);
  for (float& number : numbers) number = normal(random);
  const rubato::NamedArray array{.name = "weight",
                                 .type = rubato::ElementType::f32,
                                 .shape = {static_cast<std::int64_t>(kNumbers)},
                                 .data = numbers.data()};
  for (auto _ : state) benchmark::DoNotOptimize(rubato::histogram_of(array));
}
BENCHMARK(histogram)->Unit(benchmark::kMillisecond);

enum class Written { nothing, scalars, histograms, histograms_every_step };

void epoch(benchmark::State& state, Written written) {
  const rubato::RunConfiguration configuration{
      .model = "mlp", .trace = "256", .epochs = 1, .threads = 1};
  static const auto workload = rubato::dense_workload(configuration);
  for (auto _ : state) {
    rubato::Run run(configuration, workload);
    if (written != Written::nothing) {
      rubato::TensorBoardOptions options;
      if (written != Written::scalars) options.histograms = "*";
      if (written == Written::histograms_every_step) options.histograms_every = 1;
      run.trainer().add_observer<rubato::TensorBoard>(folder(), options);
    }
    state.SetIterationTime(run.execute().summary.value().result.train_seconds);
  }
  fs::remove_all(folder());
}
BENCHMARK_CAPTURE(epoch, without, Written::nothing)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(epoch, scalars, Written::scalars)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(epoch, histograms, Written::histograms)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(epoch, every_step, Written::histograms_every_step)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
