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

/// A time span in which a thread did one thing. The spans of a thread do not overlap, and include
/// every phase that an objective reports (EvaluatorProgress::enter()).
struct Span {
  using Moment = std::chrono::steady_clock::time_point;

  Activity activity = Activity::gather;
  EpochIndex epoch{};
  StepIndex step{};
  /// The minibatch of the epoch, and the core that computed it; empty for work on the whole step:
  /// the update, and the part of the sum that follows when all gradients are there.
  std::optional<MinibatchIndex> minibatch{};
  std::optional<CoreRank> core{};
  /// From 0 to Workers::threads() - 1; 0, the calling thread, for work on the whole step.
  int thread = 0;
  Moment begin{};
  Moment end{};
};

/// Called by several threads at once, each at the end of its own spans. Reports the work of a core
/// that died, too.
using OnSpan = std::function<void(const Span& span)>;

}  // namespace rubato
