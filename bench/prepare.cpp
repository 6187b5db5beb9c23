// What `rubato train --model softmax` does before its first step, in CPU time of all threads, and
// `all`, which is the whole but for loading the program. docs/adr/0086 has the results.
//
//   bench_prepare --benchmark_repetitions=5 --benchmark_enable_random_interleaving
//     --benchmark_report_aggregates_only

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <unistd.h>
#include <zlib.h>

#include <rubato/base/machine.hpp>
#include <rubato/loop/eigen.hpp>
#include <rubato/runs/workload.hpp>

#include "base/core/large_memory.hpp"
#include "loop/data/images/digits.hpp"
#include "loop/data/input_file.hpp"
#include "loop/data/sample_set.hpp"

namespace {

// Each configuration has as many threads as there are CPUs, and a run makes 85.
void configurations(benchmark::State& state) {
  for (auto _ : state) {
    for (int i = 0; i < 85; ++i) benchmark::DoNotOptimize(rubato::RunConfiguration());
  }
}

// For comparison: as many questions to the system.
void cpus(benchmark::State& state) {
  for (auto _ : state) {
    for (int i = 0; i < 85; ++i) benchmark::DoNotOptimize(rubato::cpus());
  }
}

void digits(benchmark::State& state) {
  const auto threads = static_cast<int>(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(rubato::builtin_digits(threads));
}

rubato::DataSets builtin() {
  static const rubato::DataSets data = [] {
    rubato::TrainTestImages images = rubato::builtin_digits();
    return rubato::DataSets{.train = rubato::sample_set_of(std::move(images.train)),
                            .inputs = rubato::InputKind::pixels,
                            .classes = 10};
  }();
  return data;
}

void statistics(benchmark::State& state) {
  for (auto _ : state) {
    rubato::DataSets data = builtin();
    rubato::normalise(data);
    benchmark::DoNotOptimize(data.channels.data());
  }
}

void read_rows(const rubato::DataSets& data, float* rows) {
  const rubato::InputReader reader(data);
  const std::int64_t size = data.train.inputs.elements();
  for (std::int64_t i = 0; i < data.train.size(); ++i) {
    reader.read(data.train.input(i), rows + i * size);
  }
  benchmark::ClobberMemory();
}

std::size_t values_of(const rubato::DataSets& data) {
  return static_cast<std::size_t>(data.train.size() * data.train.inputs.elements());
}

void rows(benchmark::State& state) {
  rubato::DataSets data = builtin();
  rubato::normalise(data);
  for (auto _ : state) {
    const auto memory = rubato::large_memory(values_of(data) * sizeof(float));
    read_rows(data, static_cast<float*>(memory.get()));
  }
}

// For comparison: memory that is cleared first, in small pages.
void rows_in_a_vector(benchmark::State& state) {
  rubato::DataSets data = builtin();
  rubato::normalise(data);
  for (auto _ : state) {
    std::vector<float> memory(values_of(data));
    read_rows(data, memory.data());
  }
}

void all(benchmark::State& state) {
  for (auto _ : state) {
    const rubato::RunConfiguration configuration{.model = "softmax"};
    benchmark::DoNotOptimize(rubato::dense_workload(configuration));
  }
}

// Not before the first step, but before the first checkpoint.
void fingerprint(benchmark::State& state) {
  const rubato::ImageSet images = rubato::builtin_digits().train;
  for (auto _ : state) {
    state.PauseTiming();
    const auto data = rubato::to_rows<float>(images, rubato::pixel_statistics(images));
    state.ResumeTiming();
    benchmark::DoNotOptimize(data.fingerprint());
  }
}

// The pixels of the training digits, packed by gzip; removed at the end.
class Packed {
 public:
  Packed() {
    const rubato::ImageSet images = rubato::builtin_digits().train;
    const gzFile file = gzopen(path_.c_str(), "wb");
    gzwrite(file, images.pixels.data(), static_cast<unsigned>(images.pixels.size()));
    gzclose(file);
    bytes_.resize(images.pixels.size());
  }
  ~Packed() { std::filesystem::remove(path_); }
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::vector<std::uint8_t>& bytes() { return bytes_; }

 private:
  std::string path_ = std::filesystem::temp_directory_path() /
                      ("rubato_bench_prepare." + std::to_string(getpid()) + ".gz");
  std::vector<std::uint8_t> bytes_;
};

void unpacked(benchmark::State& state) {
  Packed packed;
  for (auto _ : state) {
    rubato::detail::GzipFile file(packed.path(), "pixels");
    benchmark::DoNotOptimize(file.read(packed.bytes()));
  }
}

void unpacked_by_zlib(benchmark::State& state) {
  Packed packed;
  for (auto _ : state) {
    const gzFile file = gzopen(packed.path().c_str(), "rb");
    gzbuffer(file, 1U << 18U);
    gzread(file, packed.bytes().data(), static_cast<unsigned>(packed.bytes().size()));
    gzclose(file);
  }
}

void in_cpu_time(benchmark::internal::Benchmark* one) {
  one->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime();
}

BENCHMARK(configurations)->Apply(in_cpu_time);
BENCHMARK(cpus)->Apply(in_cpu_time);
BENCHMARK(digits)->ArgName("threads")->Arg(1)->Arg(2)->Apply(in_cpu_time);
BENCHMARK(statistics)->Apply(in_cpu_time);
BENCHMARK(rows)->Apply(in_cpu_time);
BENCHMARK(rows_in_a_vector)->Apply(in_cpu_time);
BENCHMARK(all)->Apply(in_cpu_time);
BENCHMARK(fingerprint)->Apply(in_cpu_time);
BENCHMARK(unpacked)->Apply(in_cpu_time);
BENCHMARK(unpacked_by_zlib)->Apply(in_cpu_time);

}  // namespace
