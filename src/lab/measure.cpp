#include "lab/measure.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <vector>

#include <rubato/collective/kernels.hpp>

#include "core/check.hpp"

namespace rubato::lab {

namespace {

constexpr std::int64_t kFewestRuns = 5;
constexpr std::int64_t kMostRuns = 1000;

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

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Measurement measure(Contestant& contestant, const ReduceTask& task, const MeasureOptions& options,
                    const Clock& clock) {
  contestant.prepare();
  const double first = clock();
  contestant.run(arrivals_of(Arrival::simultaneous, task.cores, 0));
  const double once = clock() - first;
  check_result(contestant, task);

  const Arrivals arrivals = arrivals_of(options.arrival, task.cores, wait_for_last(once));
  Flusher flusher(options.cache);
  std::vector<double> seconds;
  const double begin = clock();
  while (static_cast<std::int64_t>(seconds.size()) < kFewestRuns ||
         (clock() - begin < options.seconds &&
          static_cast<std::int64_t>(seconds.size()) < kMostRuns)) {
    contestant.prepare();
    flusher.flush();
    const double start = clock();
    contestant.run(arrivals);
    seconds.push_back(clock() - start - arrivals.back());
  }
  std::sort(seconds.begin(), seconds.end());
  return {.median = seconds[seconds.size() / 2],
          .min = seconds.front(),
          .max = seconds.back(),
          .runs = static_cast<std::int64_t>(seconds.size())};
}

}  // namespace rubato::lab
