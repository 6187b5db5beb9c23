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
  /// In which of its substeps, from 0.
  std::int64_t substep = 0;
};

/// A core whose every substep takes `factor` times as long, at least 1.
struct Straggler {
  CoreRank core;
  double factor = 1;

  friend bool operator==(const Straggler&, const Straggler&) = default;
};

/// Which cores die. The remaining cores redo a step in which one dies (a new core, if none remains)
/// until it succeeds; the next step has as many as the trace says.
struct FaultOptions {
  std::vector<Fault> planned{};
  /// The probability that a busy core dies in a step, independently of others; in [0, 1).
  double rate = 0;
  /// Of the random ones.
  std::uint64_t seed = 0;

  friend bool operator==(const FaultOptions&, const FaultOptions&) = default;
};

/// Decides who dies: a pure function of step, attempt and core.
class FaultModel {
 public:
  /// Throws Error for an option out of its range.
  explicit FaultModel(FaultOptions options);

  /// The substep in which `core`, one with `substeps` >= 1 of them, dies in the `attempt`th (from
  /// 0) attempt at `step`, if it does. Planned faults happen in the first attempt.
  [[nodiscard]] std::optional<std::int64_t> death(StepIndex step, std::int64_t attempt,
                                                  CoreRank core, std::int64_t substeps) const;
  /// Whether there can be any.
  [[nodiscard]] bool any() const { return !options_.planned.empty() || options_.rate > 0; }

 private:
  FaultOptions options_;
};

}  // namespace rubato
