#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <rubato/loop/observer.hpp>

namespace rubato {

/// Watches which of the planned faults happen, so that the user can be told of those that do not.
class PlannedFaults final : public Observer {
 public:
  /// Training continues with step `first`: faults of earlier steps are not expected.
  PlannedFaults(std::vector<Fault> planned, StepIndex first);

  void on_fault(Training& training, const StepPlan& step, std::span<const FaultRecord> faults,
                std::int64_t cores_left) override;
  void on_step(Training& training, const StepRecord& step) override;

  /// A line for each fault that did not happen in a training that has ended after `steps`.
  [[nodiscard]] std::vector<std::string> missed(std::int64_t steps) const;

 private:
  std::vector<Fault> awaited_;
  // Faults whose cores had no substep in their steps.
  std::vector<Fault> idle_;
};

}  // namespace rubato
