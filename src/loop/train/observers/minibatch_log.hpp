#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <rubato/loop/records.hpp>
#include <rubato/steps/plan.hpp>

namespace rubato {

/// Records of the minibatches of a step. Each minibatch has its own place, so several threads may
/// call note() at once.
class MinibatchLog {
 public:
  void begin(const StepPlan& step) {
    first_ = step.first_minibatch;
    records_.assign(static_cast<std::size_t>(step.minibatches), {});
  }

  void note(MinibatchIndex minibatch, double loss, double gradient_norm) {
    records_[static_cast<std::size_t>(minibatch.value() - first_.value())] = {
        .minibatch = minibatch, .core = {}, .loss = loss, .gradient_norm = gradient_norm};
  }

  /// The minibatches in ascending order, each with the core that finally computed it.
  [[nodiscard]] std::span<const MinibatchRecord> records(const StepPlan& done,
                                                         Assignment assignment) {
    for (CoreRank core; core.value() < done.cores; ++core) {
      const MinibatchRun share = done.share_of(core, assignment);
      for (std::int64_t substep = 0; substep < share.count; ++substep) {
        const std::int64_t place = share[substep].value() - first_.value();
        MinibatchRecord& record = records_[static_cast<std::size_t>(place)];
        record.core = core;
        record.substep = substep;
      }
    }
    return records_;
  }

 private:
  MinibatchIndex first_;
  std::vector<MinibatchRecord> records_;
};

}  // namespace rubato
