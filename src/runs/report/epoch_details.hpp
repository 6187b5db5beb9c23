#pragma once

#include <string>

#include <rubato/loop/records.hpp>

namespace rubato {

/// The details of an epoch for --verbose: the ranges of its steps' values, and how the time of its
/// threads was spent. The time that remains is waiting for the last core.
class EpochDetails {
 public:
  void note(const StepRecord& step);
  /// Two lines, with line ends, about the steps since the last call; empty if there were none.
  [[nodiscard]] std::string take(const EpochRecord& epoch, int threads);

 private:
  struct Range {
    double least = 0;
    double most = 0;

    void take(double value, bool first);
    // Examples: "batch 64 to 512", "batch 64".
    [[nodiscard]] std::string text(const char* name) const;
  };

  bool any_ = false;
  Range batch_;
  Range cores_;
  Range rate_;
  Range gain_;
  StepTiming seconds_;
};

}  // namespace rubato
