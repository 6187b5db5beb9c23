#pragma once

#include <rubato/core/number.hpp>

namespace rubato {

/// How the first values of a moving average weigh.
enum class Averaging {
  /// avg = sum of (1 - smoothing) smoothing^k x_(t-k), divided by the sum of those weights.
  debiased,
  /// The plain mean of the first 1 / (1 - smoothing) values, from there on
  /// avg = smoothing avg + (1 - smoothing) x (Johnson et al. 2020, appendix B.3).
  mean_first,
};

/// A moving average whose smoothing may change from value to value.
class MovingAverage {
 public:
  /// `smoothing` is in [0, 1).
  void add(double value, double smoothing, Averaging averaging);
  [[nodiscard]] double value() const { return state_.value; }
  /// As if every value had been multiplied by `factor`.
  void rescale(double factor) {
    state_.value *= factor;
    state_.biased *= factor;
    state_.total *= factor;
  }

  /// All that it knows.
  void visit_state(NumberVisitor& numbers) {
    visit_debiased(numbers);
    numbers.number(state_.total);
    numbers.number(state_.count);
  }
  /// All that it knows where every value was added by Averaging::debiased.
  void visit_debiased(NumberVisitor& numbers) {
    numbers.number(state_.value);
    numbers.number(state_.biased);
    numbers.number(state_.weight);
  }

 private:
  struct State {
    double value = 0;
    double biased = 0;
    double weight = 0;
    double total = 0;
    double count = 0;
  };
  State state_;
};

}  // namespace rubato
