#pragma once

// What tests of programs that train need: objectives and traces that are tiny, a recorder, an exact
// comparison. No framework for tests is asked for.

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

/// A trace of these batch sizes.
[[nodiscard]] Trace trace_of(const std::vector<std::int64_t>& batch_sizes,
                             TraceEnd end = TraceEnd::cycle);

/// Least squares in double: three weights and a bias, fitted to `samples` rows that are drawn from
/// `seed`, with a running mean of the targets behind the gradient and noise that is drawn for each
/// minibatch. So all that could depend on who computes what is in it. A test set of as many rows.
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

/// As many hosts as weights, in one process: each for a trainer of its own, on a thread of its own
/// (TrainOptions::hosts). When one is gone, because its trainer has thrown, exchange() throws Error
/// on the others.
[[nodiscard]] std::vector<std::shared_ptr<Hosts>> emulated_hosts(
    const std::vector<double>& weights);

/// The first parameter or buffer whose bytes differ between two trainers, with the element and both
/// values; empty where all are the same bits.
[[nodiscard]] std::optional<std::string> difference_of(const Trainer& one, const Trainer& other);

/// Ways to train that must not matter, many: threads, cores, reproducible reducers and assignments
/// with each other, cores that die, evaluators dealt in turns, and a resume after every step.
[[nodiscard]] std::vector<Way> all_ways_to_train(std::int64_t steps);

/// Trains in all_ways_to_train(): the first difference, for people, with the way that shows it;
/// empty where all come to the same bits.
///
///     EXPECT_EQ(rubato::test::difference_in_bits(make, 7), std::nullopt);
[[nodiscard]] std::optional<std::string> difference_in_bits(const MakeTrainer& make,
                                                            std::int64_t steps);

}  // namespace rubato::test
