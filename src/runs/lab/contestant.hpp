#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/loop/workers.hpp>

#include "conditions.hpp"

namespace rubato::lab {

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

}  // namespace rubato::lab
