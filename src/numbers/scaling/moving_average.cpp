#include <rubato/numbers/adascale_estimator.hpp>

namespace rubato {

void MovingAverage::add(double value, double smoothing, Averaging averaging) {
  if (averaging == Averaging::debiased) {
    state_.biased = smoothing * state_.biased + (1 - smoothing) * value;
    state_.weight = smoothing * state_.weight + (1 - smoothing);
    state_.value = state_.biased / state_.weight;
    return;
  }
  state_.count += 1;
  if (state_.count < 1 / (1 - smoothing)) {
    state_.total += value;
    state_.value = state_.total / state_.count;
  } else {
    state_.value = smoothing * state_.value + (1 - smoothing) * value;
  }
}

}  // namespace rubato
