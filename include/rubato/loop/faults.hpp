#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <rubato/base/index.hpp>

namespace rubato {

/// A core that dies in a step, in its substep `substep`, counted from 0 and clamped to the core's
/// last substep. The death of an idle core has no effect.
struct Fault {
  CoreRank core;
  StepIndex step;
  std::int64_t substep = 0;

  friend bool operator==(const Fault&, const Fault&) = default;
};

/// A core that died in a step.
struct FaultRecord {
  CoreRank core;
  /// The substep in which it died, from 0.
  std::int64_t substep = 0;
};

/// A core whose every substep takes `factor` times as long, at least 1.
struct Straggler {
  CoreRank core;
  double factor = 1;

  friend bool operator==(const Straggler&, const Straggler&) = default;
};

/// The cores that die. The remaining cores (a new core, if none remains) redo the step until it
/// succeeds; the next step again has as many cores as the trace says.
struct FaultOptions {
  std::vector<Fault> planned{};
  /// The probability that a busy core dies in a step, independently of the others; in [0, 1).
  double rate = 0;
  /// Seed of the random faults.
  std::uint64_t seed = 0;

  friend bool operator==(const FaultOptions&, const FaultOptions&) = default;
};

/// Decides which cores die: a pure function of step, attempt and core.
class FaultModel {
 public:
  /// Throws Error for an option out of range.
  explicit FaultModel(FaultOptions options);

  /// Returns the substep in which `core` dies in attempt number `attempt` (from 0) at `step`, or
  /// nothing if it survives. The core has `substeps` >= 1 of them. Planned faults happen in the
  /// first attempt.
  [[nodiscard]] std::optional<std::int64_t> death(StepIndex step, std::int64_t attempt,
                                                  CoreRank core, std::int64_t substeps) const;
  /// Returns whether any core can die.
  [[nodiscard]] bool any() const { return !options_.planned.empty() || options_.rate > 0; }

 private:
  FaultOptions options_;
};

}  // namespace rubato
