#pragma once

#include <cstdint>
#include <vector>

#include <rubato/loop/records.hpp>

namespace rubato {

/// What equal steps took, each of so many minibatches on as many cores as there are threads.
class StepSamples {
 public:
  /// Both at least 1.
  StepSamples(std::int64_t minibatches, int threads)
      : minibatches_(static_cast<double>(minibatches)), threads_(threads) {}

  /// One more: seconds from the end of the step before to its end, and where they went.
  void add(double seconds, const StepTiming& timing);

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(steps_.size()); }

  // Of at least one step.

  /// The median of what a minibatch took on its thread.
  [[nodiscard]] double substep_seconds() const;
  /// The median of what a step took besides.
  [[nodiscard]] double update_seconds() const;
  /// The distance between the quartiles of the steps' seconds, relative to their median.
  [[nodiscard]] double spread() const;
  /// Whether the median of more steps would be the same within half a percent, as far as these
  /// tell: there are at least 20, and spread() is that small against the root of their number.
  [[nodiscard]] bool settled() const;

 private:
  double minibatches_;
  int threads_;
  std::vector<double> steps_;
  std::vector<double> substeps_;
  std::vector<double> updates_;
};

}  // namespace rubato
