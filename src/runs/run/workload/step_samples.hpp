#pragma once

#include <cstdint>
#include <vector>

#include <rubato/loop/records.hpp>

namespace rubato {

/// The durations of equal steps, each of `minibatches` minibatches on as many cores as there are
/// threads.
class StepSamples {
 public:
  /// Both arguments are at least 1.
  StepSamples(std::int64_t minibatches, int threads)
      : minibatches_(static_cast<double>(minibatches)), threads_(threads) {}

  /// Adds a step: the seconds from the end of the step before to its end, and its timing.
  void add(double seconds, const StepTiming& timing);

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(steps_.size()); }

  // The following need at least one step.

  /// The median of the seconds of a minibatch on its thread.
  [[nodiscard]] double substep_seconds() const;
  /// The median of the remaining seconds of a step.
  [[nodiscard]] double update_seconds() const;
  /// The distance between the quartiles of the steps' seconds, relative to their median.
  [[nodiscard]] double spread() const;
  /// Whether more steps would change the median by less than half a percent, as far as these can
  /// tell: there are at least 20, and spread() is small enough relative to the square root of their
  /// number.
  [[nodiscard]] bool settled() const;

 private:
  double minibatches_;
  int threads_;
  std::vector<double> steps_;
  std::vector<double> substeps_;
  std::vector<double> updates_;
};

}  // namespace rubato
