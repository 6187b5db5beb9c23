#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <rubato/numbers/sums.hpp>

#include "base/core/check.hpp"

namespace rubato::lab {

namespace {

// The result that every strategy must have: payload() has the period 17 in k.
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
  RUBATO_CHECK(right, "only a strategy with a correct result is measured");
}

// Summarises at least one run.
Measurement pooled(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return {.median = seconds[seconds.size() / 2],
          .min = seconds.front(),
          .max = seconds.back(),
          .runs = static_cast<std::int64_t>(seconds.size())};
}

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<double> measure(Contestant& contestant, const ReduceTask& task,
                            const MeasureOptions& options, const Clock& clock) {
  contestant.prepare();
  const double first = clock();
  contestant.run(arrivals_of(Arrival::simultaneous, task.cores, 0));
  const double once = clock() - first;
  check_result(contestant, task);

  const Arrivals arrivals = arrivals_of(options.arrival, task.cores, wait_for_last(once));
  Flusher flusher(options.cache);
  std::vector<double> seconds;
  const double begin = clock();
  while (has_another_run(seconds.size(), clock() - begin, options.seconds)) {
    contestant.prepare();
    flusher.flush();
    const double start = clock();
    contestant.run(arrivals);
    seconds.push_back(clock() - start - arrivals.back());
  }
  return seconds;
}

Entrant entrant(std::string_view name, MakeContestant make, const ReduceTask& task, Clock clock) {
  return {.name = std::string(name),
          .take_turn = [make = std::move(make), task,
                        clock = std::move(clock)](const MeasureOptions& options) {
            const auto contestant = make();
            return measure(*contestant, task, options, clock);
          }};
}

Entrant entrant(std::string_view strategy, const ReduceTask& task, Workers& workers) {
  return entrant(
      strategy,
      [name = std::string(strategy), task, &workers] {
        return make_contestant(name, task, workers);
      },
      task);
}

std::vector<std::optional<Measurement>> measure_in_turn(std::span<const Entrant> entrants,
                                                        const MeasureOptions& options,
                                                        const OnTurn& on_turn) {
  MeasureOptions of_turn = options;
  of_turn.seconds /= kRounds;
  std::vector<std::vector<double>> seconds(entrants.size());
  std::vector<bool> failed(entrants.size(), false);
  for (int round = 1; round <= kRounds; ++round) {
    for (std::size_t i = 0; i < entrants.size(); ++i) {
      if (failed[i]) continue;
      on_turn(entrants[i].name, round);
      const std::vector<double> turn = entrants[i].take_turn(of_turn);
      failed[i] = turn.empty();
      seconds[i].insert(seconds[i].end(), turn.begin(), turn.end());
    }
  }
  std::vector<std::optional<Measurement>> measurements(entrants.size());
  for (std::size_t i = 0; i < entrants.size(); ++i) {
    if (!failed[i]) measurements[i] = pooled(std::move(seconds[i]));
  }
  return measurements;
}

}  // namespace rubato::lab
