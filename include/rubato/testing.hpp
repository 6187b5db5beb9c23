#pragma once

// Helpers for tests of programs that train: tiny objectives and traces, a recorder, and an exact
// comparison. They do not depend on a test framework.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rubato/loop/trainer.hpp>
#include <rubato/loop/verify.hpp>

namespace rubato::test {

/// Makes a trace of these batch sizes.
[[nodiscard]] Trace trace_of(const std::vector<std::int64_t>& batch_sizes,
                             TraceEnd end = TraceEnd::cycle);

/// Makes a least-squares objective in double: three weights and a bias, fitted to `samples` rows
/// that are drawn from `seed`, with a running mean of the targets after the gradient and noise that
/// is drawn for each minibatch. So it contains everything that could depend on who computes what.
/// The test set has equally many rows.
[[nodiscard]] std::unique_ptr<ObjectiveOf<double>> tiny_objective(std::int64_t samples = 48,
                                                                  std::uint64_t seed = 1);

/// Keeps every record, and calls `on_each`, if there is one, after each step.
class Recorder : public Observer {
 public:
  explicit Recorder(std::function<void(Training&, const StepRecord&)> on_each = {})
      : on_each_(std::move(on_each)) {}

  void on_epoch_begin(Training& training, const EpochStart& epoch) override;
  void on_step(Training& training, const StepRecord& step) override;
  void on_epoch(Training& training, const EpochRecord& epoch) override;

  std::vector<EpochStart> begun;
  std::vector<StepRecord> steps;
  std::vector<EpochRecord> epochs;

 private:
  std::function<void(Training&, const StepRecord&)> on_each_;
};

/// Makes a host for each weight, in one process: each is for a trainer of its own, on a thread of
/// its own (TrainOptions::hosts). Once one has gone, because its trainer has thrown, exchange()
/// throws Error on the others.
[[nodiscard]] std::vector<std::shared_ptr<Hosts>> emulated_hosts(
    const std::vector<double>& weights);

/// Returns the first parameter or buffer whose bytes differ between two trainers, with the element
/// and both values; empty if all bits are the same.
[[nodiscard]] std::optional<std::string> difference_of(const Trainer& one, const Trainer& other);

/// Makes many executions that must not change the result: combinations of threads, cores,
/// reproducible reducers and assignments, cores that die, evaluators dealt in turns, and a resume
/// after every step.
[[nodiscard]] std::vector<Execution> all_executions(std::int64_t steps);

/// Trains in all_executions() and returns the first difference, for people, with the execution that
/// shows it; empty if all give the same bits.
///
///     EXPECT_EQ(rubato::test::difference_in_bits(make, 7), std::nullopt);
[[nodiscard]] std::optional<std::string> difference_in_bits(const MakeTrainer& make,
                                                            std::int64_t steps);

}  // namespace rubato::test
