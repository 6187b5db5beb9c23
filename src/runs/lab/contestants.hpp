#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/parse.hpp>
#include <rubato/loop/reducer.hpp>
#include <rubato/loop/workers.hpp>

namespace rubato::lab {

/// The order in which the cores' buffers become available.
enum class Arrival {
  simultaneous,  ///< all at the start
  skewed,        ///< one after the other, evenly
  straggler,     ///< all at the start, except the last
};
inline constexpr std::array<Choice<Arrival>, 3> kArrivals{{{Arrival::simultaneous, "simultaneous"},
                                                           {Arrival::skewed, "skewed"},
                                                           {Arrival::straggler, "straggler"}}};

/// The content of the caches at the start.
enum class Cache {
  hot,   ///< the buffers as far as they fit, as after a backward pass
  cold,  ///< nothing of the buffers
};
inline constexpr std::array<Choice<Cache>, 2> kCaches{{{Cache::hot, "hot"}, {Cache::cold, "cold"}}};

/// The time at which each core's buffer becomes available, in seconds from the start; the last
/// core's is the latest.
using Arrivals = std::vector<double>;

/// The arrivals at `cores` cores, the last of which is after `last` seconds.
[[nodiscard]] inline Arrivals arrivals_of(Arrival arrival, std::int64_t cores, double last) {
  Arrivals arrivals(static_cast<std::size_t>(cores), 0.0);
  if (arrival == Arrival::simultaneous) return arrivals;
  arrivals.back() = last;
  if (arrival == Arrival::straggler) return arrivals;
  for (std::size_t core = 0; core + 1 < arrivals.size(); ++core) {
    arrivals[core] = last * static_cast<double>(core) / static_cast<double>(arrivals.size() - 1);
  }
  return arrivals;
}

/// The arrival of the last buffer if the whole task takes `seconds`: later than any strategy needs
/// for the others.
[[nodiscard]] inline double wait_for_last(double seconds) {
  constexpr double kLeast = 1e-3;
  return std::max(kLeast, 2 * seconds);
}

/// Whether a strategy or a peer gets another run in a turn of `seconds`, after `runs` runs that
/// took `spent` seconds.
[[nodiscard]] inline bool has_another_run(std::size_t runs, double spent, double seconds) {
  constexpr std::size_t kFewest = 2;
  constexpr std::size_t kMost = 334;
  return runs < kFewest || (runs < kMost && spent < seconds);
}

/// Memory that pushes everything else out of the caches when it is written.
class Flusher {
 public:
  /// Allocates nothing if the caches may be hot.
  explicit Flusher(Cache cache, std::size_t bytes = kBytes) : memory_(bytes_of(cache, bytes)) {}
  void flush() {
    constexpr std::size_t kLine = 64;
    for (std::size_t i = 0; i < memory_.size(); i += kLine) ++memory_[i];
  }

  /// The size of a flusher's memory.
  [[nodiscard]] static constexpr std::size_t bytes_of(Cache cache, std::size_t bytes = kBytes) {
    return cache == Cache::cold ? bytes : 0;
  }

  /// Exceeds the last-level cache that a workstation is likely to have.
  static constexpr std::size_t kBytes = std::size_t{256} << 20;

 private:
  std::vector<unsigned char> memory_;
};

/// The task of a contestant: to sum a buffer of each core and, if fused, to update parameters with
/// the sum.
struct ReduceTask {
  std::int64_t cores = 8;
  /// Values (float) in a buffer.
  std::size_t size = 0;
  /// Whether one SGD step with momentum follows.
  bool fused = false;
};

/// A way to do a ReduceTask, ready to be timed.
class Contestant {
 public:
  Contestant() = default;
  Contestant(const Contestant&) = delete;
  Contestant& operator=(const Contestant&) = delete;
  virtual ~Contestant() = default;

  /// Fills the cores' buffers and the parameters anew; called before each run, and not timed.
  virtual void prepare() = 0;
  /// Does the task. Core i's buffer may be touched from arrivals[i] on.
  virtual void run(const Arrivals& arrivals) = 0;
  /// The result of run(): the sum, or the parameters if the task is fused.
  [[nodiscard]] virtual std::span<const float> result() const = 0;
};

/// Value k of the buffer of `core`: a small whole number, so that every order of summation is
/// exact.
[[nodiscard]] constexpr float payload(std::int64_t core, std::size_t k) {
  return static_cast<float>((static_cast<std::size_t>(core) * 7 + k * 3) % 17) - 8.0F;
}

/// The parameters and the velocity before a fused run, and the update's coefficients.
inline constexpr float kParameter = 1.0F;
inline constexpr float kVelocity = 0.5F;
inline constexpr float kLearningRate = 0.01F;
inline constexpr float kMomentum = 0.9F;

/// The strategies: reducer_names(), baseline_names() and, if fused, "loop", a loop written by hand
/// as a bound of what is possible.
[[nodiscard]] std::vector<std::string_view> strategy_names(bool fused);

/// Throws Error for a strategy that is unknown, has arguments that it does not accept, or cannot do
/// the task.
void require_strategy(std::string_view strategy, const ReduceTask& task);

/// Bytes of all arrays of the strategy together.
[[nodiscard]] double memory_of(std::string_view strategy, const ReduceTask& task);

/// Bytes that the strategy has to read and write in main memory when nothing is cached.
[[nodiscard]] double bytes_moved_by(std::string_view strategy, const ReduceTask& task);

/// The strategy of that name. Throws Error as require_strategy() does. `workers` must outlive it.
[[nodiscard]] std::unique_ptr<Contestant> make_contestant(std::string_view strategy,
                                                          const ReduceTask& task, Workers& workers);

/// The reducers against which those of training are measured. Training does not offer them, as none
/// is reproducible and none is faster:
///
///   mutex   one sum under one lock
///   atomic  one sum, each value added atomically
///   tbb     keeps all leaves, and sums them by oneTBB's parallel_deterministic_reduce
[[nodiscard]] std::span<const std::string_view> baseline_names();

/// The reducer of that name; null if there is none. The workers must outlive it.
[[nodiscard]] std::unique_ptr<Reducer<float>> make_baseline(std::string_view name,
                                                            const ReducerSize& size,
                                                            Workers& workers);

}  // namespace rubato::lab
