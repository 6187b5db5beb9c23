#include "planned_faults.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace rubato {

PlannedFaults::PlannedFaults(std::vector<Fault> planned, StepIndex first)
    : awaited_(std::move(planned)) {
  std::erase_if(awaited_, [first](const Fault& fault) { return fault.step < first; });
}

void PlannedFaults::on_fault(Training& training, const StepPlan& step,
                             std::span<const FaultRecord> faults, std::int64_t cores_left) {
  static_cast<void>(training), static_cast<void>(cores_left);
  std::erase_if(awaited_, [&](const Fault& fault) {
    return fault.step == step.index &&
           std::any_of(faults.begin(), faults.end(),
                       [&](const FaultRecord& died) { return died.core == fault.core; });
  });
}

void PlannedFaults::on_step(Training& training, const StepRecord& step) {
  static_cast<void>(training);
  const auto is_over = [&](const Fault& fault) { return fault.step == step.plan.index; };
  std::copy_if(awaited_.begin(), awaited_.end(), std::back_inserter(idle_), is_over);
  std::erase_if(awaited_, is_over);
}

std::vector<std::string> PlannedFaults::missed(std::int64_t steps) const {
  std::vector<std::string> lines;
  const auto add = [&](const Fault& fault, const std::string& why) {
    lines.push_back(fmt::format("--fault core={},step={} did not happen: {}", fault.core.value(),
                                fault.step.value() + 1, why));
  };
  for (const Fault& fault : idle_) add(fault, "the core had no substep in that step");
  for (const Fault& fault : awaited_) {
    add(fault, fmt::format("training ended after {} steps", steps));
  }
  return lines;
}

}  // namespace rubato
