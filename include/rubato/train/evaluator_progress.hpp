#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include <rubato/train/training_error.hpp>

namespace rubato {

/// The progress of an evaluator through a minibatch: for the place of errors, the record of the
/// step, and spans (TrainOptions::on_span).
class EvaluatorProgress {
 public:
  using Clock = std::chrono::steady_clock;
  /// Hears of each phase when it has ended.
  using OnPhase = std::function<void(Phase phase, Clock::time_point begin, Clock::time_point end)>;

  explicit EvaluatorProgress(OnPhase on_phase = {}) : on_phase_(std::move(on_phase)) {}

  /// The evaluator is in `phase` from now on, until it enters another one or returns. Reads the
  /// clock only for Phase::data or if there is a listener.
  void enter(Phase phase) {
    end();
    phase_ = phase;
    timed_ = phase == Phase::data || on_phase_;
    if (timed_) begin_ = Clock::now();
  }
  /// The evaluator has returned.
  void end() {
    if (!timed_) return;
    timed_ = false;
    const Clock::time_point now = Clock::now();
    if (phase_ == Phase::data) data_ += now - begin_;
    if (on_phase_) on_phase_(phase_, begin_, now);
  }

  /// The phase of the last enter(); Phase::data before the first.
  [[nodiscard]] Phase phase() const { return phase_; }
  /// Spent in Phase::data.
  [[nodiscard]] double data_seconds() const { return std::chrono::duration<double>(data_).count(); }

 private:
  OnPhase on_phase_;
  Phase phase_ = Phase::data;
  // Whether the phase has been entered and is being timed.
  bool timed_ = false;
  Clock::time_point begin_{};
  Clock::duration data_{};
};

}  // namespace rubato
