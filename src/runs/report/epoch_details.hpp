#pragma once

#include <string>

#include <rubato/loop/records.hpp>

namespace rubato {

/// What --verbose says of an epoch: between which values its steps were, and where the time of its
/// threads went, of which what is left over is waiting for the last core.
class EpochDetails {
 public:
  void note(const StepRecord& step);
  /// Of the steps since the last call: two lines, each with its end. Empty where there were none.
  [[nodiscard]] std::string take(const EpochRecord& epoch, int threads);

 private:
  struct Range {
    double least = 0;
    double most = 0;

    void take(double value, bool first);
    // "batch 64 to 512", "batch 64".
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
