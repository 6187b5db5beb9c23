#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <optional>

#include <rubato/core/choice.hpp>
#include <rubato/core/index.hpp>

namespace rubato {

/// What a thread does in a step.
enum class Activity {
  /// Gathering the samples of a minibatch.
  gather,
  forward,
  loss,
  backward,
  /// Adding the gradient of a minibatch to others, and clearing the memory for the next one.
  merge,
  /// What comes after the sum: norms, rule, optimizer, buffers.
  update,
};

inline constexpr std::array<Choice<Activity>, 6> kActivities{{{Activity::gather, "gather"},
                                                              {Activity::forward, "forward"},
                                                              {Activity::loss, "loss"},
                                                              {Activity::backward, "backward"},
                                                              {Activity::merge, "merge"},
                                                              {Activity::update, "update"}}};

/// A stretch of time that a thread spent on one thing. Those of a thread do not overlap, and none
/// is left out that an objective tells of (EvaluatorProgress::enter()).
struct Span {
  using Moment = std::chrono::steady_clock::time_point;

  Activity activity = Activity::gather;
  EpochIndex epoch{};
  StepIndex step{};
  /// Which minibatch of the epoch it was for, and the core that computed that; empty for what is
  /// done for the whole step: an update, and the part of the sum that comes when all gradients are
  /// there.
  std::optional<MinibatchIndex> minibatch{};
  std::optional<CoreRank> core{};
  /// From 0 to Workers::threads() - 1; of the whole step 0, whose calling thread it is.
  int thread = 0;
  Moment begin{};
  Moment end{};
};

/// Called by several threads at once, each for its own spans, when they end. What a core did before
/// it died is told, too.
using OnSpan = std::function<void(const Span& span)>;

}  // namespace rubato
