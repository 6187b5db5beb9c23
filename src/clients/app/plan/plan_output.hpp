#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <rubato/steps/plan.hpp>
#include <rubato/steps/step_plan.hpp>

#include "base/core/text/wrapped.hpp"

namespace rubato::app {

/// What is to be seen of a plan besides its epochs.
struct PlanView {
  Assignment assignment = Assignment::contiguous;
  std::uint64_t seed = 42;
  /// Whether the JSON lists the samples of every minibatch.
  bool indices = false;
};

/// {"epochs": [{"epoch", "trace_range": [first, last + 1], "batch_sizes", "cores": [{"core",
/// "assignments": [[minibatches of the step], ...], "indices": [[samples of the minibatch],
/// ...]}]}]}. The minibatches of "indices" come in the order of the assignments. An empty list is a
/// core that idles at that step or, where the trace changes the number of cores, that does not
/// exist then.
[[nodiscard]] std::string plan_json(const PlanOptions& plan, std::span<const EpochPlan> epochs,
                                    const PlanView& view);

/// A line for every epoch, with the utilisation (the share of core-substeps that do work, when
/// every core waits for the one with the most substeps), and how long the trace of `planner` lasts.
/// Of two batch sizes in the middle the smaller one is the median.
[[nodiscard]] std::string plan_table(const Planner& planner, std::span<const EpochPlan> epochs,
                                     const PlanView& view, LineWidth width = {});

}  // namespace rubato::app
