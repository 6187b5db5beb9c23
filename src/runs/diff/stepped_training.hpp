#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/loop/records.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>

namespace rubato {

/// The result of one minibatch of a step, as one evaluator computes it.
struct MinibatchResult {
  std::int64_t of_step = 0;
  double loss = 0;
  /// Valid during the call that passes the result.
  std::span<const NamedArray> gradient;
};

/// A training without a folder, which is taken step by step. Each step has a digest.
///
/// Several may exist at once; they take their steps in turns, on one thread.
class SteppedTraining {
 public:
  /// Begins with `from`, the state of a training with options from which this one could be a fork,
  /// or anew. Throws Error as Run does.
  SteppedTraining(const RunConfiguration& configuration, std::shared_ptr<const Workload> workload,
                  const State* from);

  /// Takes the next step. Returns false, without a step, if the training has ended; a step that
  /// diverged is its last one. Throws as Trainer::fit() does.
  bool advance();

  /// The number of steps in its state.
  [[nodiscard]] std::int64_t steps() const { return run_.trainer().result().steps; }
  [[nodiscard]] State state() const { return run_.trainer().state(); }
  [[nodiscard]] const std::vector<NamedArray>& parameters() const {
    return run_.trainer().parameters();
  }
  [[nodiscard]] const std::vector<TrainedArray>& trained() const {
    return run_.trainer().objective().trained();
  }
  /// Identifies the training data: Objective::fingerprint().
  [[nodiscard]] std::string data() const { return run_.trainer().objective().fingerprint(); }
  [[nodiscard]] std::int64_t minibatch_size() const {
    return run_.trainer().options().minibatch_size;
  }
  /// The step of the last advance().
  [[nodiscard]] const StepRecord& step() const { return watch_->step; }
  /// Its mean gradients before clipping; empty if it was not applied.
  [[nodiscard]] const std::vector<NamedArray>& gradients() const {
    return watch_->gradients.arrays();
  }

  /// The indices of the samples of a step's minibatch, counted from 0 in the step.
  [[nodiscard]] std::vector<std::int64_t> samples_of(const StepRecord& step,
                                                     std::int64_t minibatch) const;
  /// Computes minibatches of `step`, which is the next one, from `first` to before `end`, counted
  /// from 0 in the step, with the bits that the step has. The state stays as it is.
  void compute(const StepRecord& step, std::int64_t first, std::int64_t end,
               const std::function<void(const MinibatchResult& result)>& take);

 private:
  // Pauses after each step, and keeps what was there to see of it.
  struct Watch final : public Observer {
    [[nodiscard]] bool wants_gradients(const StepPlan& /*step*/) const override { return true; }
    void on_epoch_begin(Training& training, const EpochStart& epoch) override;
    void on_gradients(Training& training, const StepPlan& step,
                      std::span<const NamedArray> all) override;
    void on_step(Training& training, const StepRecord& taken) override;
    void between_steps(Training& training) override;

    StepRecord step{};
    ArrayCopies gradients{};
    bool has_step = false;
    // Called instead of the next step, with the parameters that steps change.
    std::function<void(Training& training)> look{};
  };

  Run run_;
  std::shared_ptr<Watch> watch_;
  bool ended_ = false;
};

}  // namespace rubato
