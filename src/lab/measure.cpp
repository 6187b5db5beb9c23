#include "lab/measure.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include <rubato/collective/kernels.hpp>
#include <rubato/core/check.hpp>
#include <rubato/core/stopwatch.hpp>

namespace rubato::lab {

namespace {

constexpr std::int64_t kFewestRuns = 5;
constexpr std::int64_t kMostRuns = 1000;
// How long the last buffer is waited for: longer than any strategy takes for the others.
constexpr double kSkewFloor = 1e-3;

// The result that every strategy must come to: payload() has the period 17 in k.
float expected(const ReduceTask& task, std::size_t k) {
  float sum = 0;
  for (std::int64_t core = 0; core < task.cores; ++core) sum += payload(core, k);
  if (!task.fused) return sum;
  float parameter = kParameter;
  float velocity = kVelocity;
  sgd_step(std::span(&parameter, 1), std::span(&velocity, 1), std::span<const float>(&sum, 1),
           {.gradient_factor = 1.0F / static_cast<float>(task.cores),
            .learning_rate = kLearningRate,
            .momentum = kMomentum});
  return parameter;
}

void check_result(const Contestant& contestant, const ReduceTask& task) {
  constexpr std::size_t kPeriod = 17;
  std::vector<float> values(kPeriod);
  for (std::size_t k = 0; k < kPeriod; ++k) values[k] = expected(task, k);
  const std::span<const float> result = contestant.result();
  RUBATO_CHECK(result.size() == task.size, "a result has the size of a buffer");
  bool right = true;
  for (std::size_t k = 0; k < result.size(); ++k) right &= result[k] == values[k % kPeriod];
  RUBATO_CHECK(right, "a strategy is only measured when its result is right");
}

Arrivals arrivals_of(Arrival arrival, std::int64_t cores, double last) {
  Arrivals arrivals(static_cast<std::size_t>(cores), 0.0);
  if (arrival == Arrival::simultaneous) return arrivals;
  arrivals.back() = last;
  if (arrival == Arrival::straggler) return arrivals;
  for (std::size_t core = 0; core + 1 < arrivals.size(); ++core) {
    arrivals[core] = last * static_cast<double>(core) / static_cast<double>(arrivals.size() - 1);
  }
  return arrivals;
}

// Memory that pushes everything else out of the caches when it is written.
class Flusher {
 public:
  explicit Flusher(Cache cache) : memory_(cache == Cache::cold ? kBytes : 0) {}
  void flush() {
    for (std::size_t i = 0; i < memory_.size(); i += 64) ++memory_[i];
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{256} << 20;
  std::vector<unsigned char> memory_;
};

}  // namespace

Measurement measure(Contestant& contestant, const ReduceTask& task, const MeasureOptions& options) {
  contestant.prepare();
  const Stopwatch first;
  contestant.run(arrivals_of(Arrival::simultaneous, task.cores, 0));
  const double once = first.seconds();
  check_result(contestant, task);

  const Arrivals arrivals =
      arrivals_of(options.arrival, task.cores, std::max(kSkewFloor, 2 * once));
  Flusher flusher(options.cache);
  std::vector<double> seconds;
  const Stopwatch spent;
  while (static_cast<std::int64_t>(seconds.size()) < kFewestRuns ||
         (spent.seconds() < options.seconds &&
          static_cast<std::int64_t>(seconds.size()) < kMostRuns)) {
    contestant.prepare();
    flusher.flush();
    const Stopwatch stopwatch;
    contestant.run(arrivals);
    seconds.push_back(stopwatch.seconds() - arrivals.back());
  }
  std::sort(seconds.begin(), seconds.end());
  return {.median = seconds[seconds.size() / 2],
          .min = seconds.front(),
          .max = seconds.back(),
          .runs = static_cast<std::int64_t>(seconds.size())};
}

}  // namespace rubato::lab
